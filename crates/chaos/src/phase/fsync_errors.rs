//! A worker whose syncs of the store fail now and then: `strace` makes them. Commits may fail, but none may be
//! acknowledged and be missing.

use super::scene::{Clients, Scene};
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
    let mut scene = Scene::open(run, folder.clone(), folder.clone(), clients).await?;
    scene.fleet.add(&tracer(&folder, &log))?;
    let is_enough = |scene: &Scene| scene.load.ended() >= ENOUGH && scene.fleet.totals().failed >= 3;
    let worked = scene.until(PATIENCE, is_enough).await;

    let failed_syncs = failed_syncs(&std::fs::read_to_string(&log).unwrap_or_default());
    let failed_commits = scene.fleet.totals().failed;
    report.figure("fsync_errors_injected", failed_syncs);
    report.require("failed syncs are told, and the worker goes on", worked && failed_syncs > 0, || {
        let ended = scene.load.ended();
        format!("{failed_syncs} syncs failed, {failed_commits} commits said so, {ended} instances ended")
    });
    scene.close("fsync_", report).await
}

fn can_trace() -> bool {
    let mut strace = Command::new("strace");
    let quiet = strace.args(["-f", "-o", "/dev/null", "true"]).stdin(Stdio::null());
    quiet.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Only the store's files: the ledger has to testify. SQLite uses one call or the other.
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
