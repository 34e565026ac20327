//! A worker whose syncs of the store sometimes fail; `strace` injects the errors. Commits may fail, but no acknowledged
//! commit may be missing.

use super::phase_run::{Clients, PhaseRun};
use crate::args::{Phase, Run};
use crate::report::Report;
use crate::worker::LEASE;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The tenth sync of each thread, and every seventh after it.
const WHEN: &str = "10+7";
const ENOUGH: u64 = 40;
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn run(run: &Run, folder: PathBuf, report: &mut Report) -> Result<(), String> {
    if !can_trace() {
        let reason =
            "`strace` is not installed, or may not trace here (a container needs `--cap-add SYS_PTRACE`)";
        report.skipped(Phase::FsyncErrors.name(), reason);
        return Ok(());
    }
    let log = folder.join("strace.log");
    let clients = Clients { in_flight: 16, ballast: 0, lease: LEASE };
    let mut phase_run = PhaseRun::open(run, folder.clone(), folder.clone(), clients).await?;
    phase_run.pool.add(&tracer(&folder, &log))?;
    let is_enough =
        |phase_run: &PhaseRun| phase_run.load.ended() >= ENOUGH && phase_run.pool.totals().failed >= 3;
    let worked = phase_run.wait_until(PATIENCE, is_enough).await;

    let failed_syncs = failed_syncs(&std::fs::read_to_string(&log).unwrap_or_default());
    let failed_commits = phase_run.pool.totals().failed;
    report.figure("fsync_errors_injected", failed_syncs);
    report.require(
        "failed syncs fail their commits, and the worker continues",
        worked && failed_syncs > 0,
        || {
            let ended = phase_run.load.ended();
            format!("{failed_syncs} syncs failed, {failed_commits} commits failed, {ended} instances ended")
        },
    );
    phase_run.close("fsync_", report).await
}

fn can_trace() -> bool {
    let mut strace = Command::new("strace");
    let quiet = strace.args(["-f", "-o", "/dev/null", "true"]).stdin(Stdio::null());
    quiet.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Only the files of the store are traced, not the effect ledger. SQLite uses one of the two calls.
fn tracer(folder: &Path, log: &Path) -> Vec<String> {
    let mut call = ["strace", "-f", "-y", "-e", "trace=fsync,fdatasync", "-o"].map(str::to_string).to_vec();
    call.push(log.display().to_string());
    for name in ["store.db", "store.db-wal"] {
        call.extend(["-P".to_string(), folder.join(name).display().to_string()]);
    }
    for sync in ["fsync", "fdatasync"] {
        call.extend(["-e".to_string(), format!("inject={sync}:error=EIO:when={WHEN}")]);
    }
    call
}

fn failed_syncs(log: &str) -> usize {
    log.lines().filter(|line| line.contains("(INJECTED)")).count()
}
