//! A run: its phases, one after the other, each with a store of its own.

mod backups;
mod disk;
mod disk_full;
mod fsync_errors;
mod goal;
mod kills;
mod namespace;
mod partitions;
mod scene;

use crate::args::{Phase, Run};
use crate::report::Report;
use std::path::PathBuf;
use tokio::time::Instant;

/// Runs every phase that was asked for; says whether all was well.
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
        // The other phases have something to say as well.
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
    let is_good = report.is_good();
    if is_good {
        std::fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    } else {
        println!("seed {}; store, ledger and what workers said are kept in {}", run.seed, folder.display());
    }
    // Read by `cargo xtask test`.
    println!("chaos: {} checks passed, {} failed", report.passed, report.failed);
    Ok(is_good)
}
