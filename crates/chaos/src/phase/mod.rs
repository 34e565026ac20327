//! A run: its phases one after the other, each phase with its own store.

mod backups;
mod disk;
mod disk_full;
mod fsync_errors;
mod goal;
mod kills;
mod namespace;
mod partitions;
mod phase_run;

use crate::args::{Phase, Run};
use crate::report::Report;
use std::path::PathBuf;
use tokio::time::Instant;

/// Runs every requested phase; returns whether all checks passed.
pub(crate) async fn run_all(run: Run) -> Result<bool, String> {
    let phases = run.phases()?;
    if phases.contains(&Phase::DiskFull) {
        namespace::enter();
    }
    let folder = std::env::temp_dir().join(format!("outlast-chaos-{}", std::process::id()));
    let began = Instant::now();
    let mut report = Report::default();
    report.figure("store", run.store.name());
    report.figure("seed", run.seed);
    for phase in &phases {
        println!("{} on {}, seed {}", phase.name(), run.store.name(), run.seed);
        let own = folder.join(phase.name());
        std::fs::create_dir_all(&own).map_err(|error| format!("{}: {error}", own.display()))?;
        let done = match phase {
            Phase::Kills => kills::run(&run, own, &mut report).await,
            Phase::DiskFull => disk_full::run(&run, own, &mut report).await,
            Phase::FsyncErrors => fsync_errors::run(&run, own, &mut report).await,
            Phase::Partitions => partitions::run(&run, own, &mut report).await,
        };
        // A phase that fails does not end the run.
        if let Err(error) = done {
            report.check(&format!("{phase} runs to its end"), &[error]);
        }
    }
    println!("{} s in all", began.elapsed().as_secs());
    report.figure("wall_seconds", began.elapsed().as_secs());
    if let Some(path) = &run.json {
        report.write(path)?;
    }
    end(&run, &report, folder)
}

fn end(run: &Run, report: &Report, folder: PathBuf) -> Result<bool, String> {
    let all_passed = report.all_passed();
    if all_passed {
        std::fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    } else {
        println!("seed {}; store, effect ledger and commit logs are kept in {}", run.seed, folder.display());
    }
    // `cargo xtask test` parses this line.
    println!("chaos: {} checks passed, {} failed", report.passed, report.failed);
    Ok(all_passed)
}
