//! A disk that becomes full while clients and workers write, and is cleared later.
//!
//! The order of events is fixed. Workers hold turns that are larger than the remaining space, the disk is filled, and new clients
//! start instances until even small calls fail. Then the workers pass their turns to the store.

use super::disk::SmallDisk;
use super::phase_run::{Clients, PhaseRun};
use crate::args::{Phase, Run};
use crate::report::Report;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const SIZE: &str = "40m";
/// Instances that must end before the disk is filled, and again after it is cleared.
const ENOUGH: u64 = 25;
const PATIENCE: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Bytes of a start. When a start fails, less space than this is left.
const BALLAST: usize = 2_000;
/// Number and size of the turns that workers hold. A turn is far larger than the space that is left when a start fails.
const LARGE_TURNS: u64 = 2;
const LARGE: usize = 512 * 1024;
/// After this many polls without a successful call, the disk is full for calls of any size.
const QUIET_POLLS: u32 = 5;
/// Long enough that workers keep the leases of the turns that they hold.
const LEASE: Duration = Duration::from_secs(10);

pub(super) async fn run(run: &Run, folder: PathBuf, report: &mut Report) -> Result<(), String> {
    let disk = match SmallDisk::mount(folder.join("disk"), SIZE) {
        Ok(disk) => disk,
        Err(error) => {
            let reason = format!(
                "no small disk can be mounted ({error}): run it as root, or where `unshare -rm` is allowed"
            );
            report.skipped(Phase::DiskFull.name(), &reason);
            return Ok(());
        }
    };
    let clients = Clients { in_flight: 16, ballast: BALLAST, lease: LEASE };
    let mut phase_run = PhaseRun::open(run, folder, disk.path().to_path_buf(), clients).await?;
    for _ in 0..2 {
        phase_run.pool.add(&[])?;
    }
    let worked = phase_run.wait_until(PATIENCE, |phase_run| phase_run.load.ended() >= ENOUGH).await;
    report.require("the phase started", worked, || format!("{} instances ended", phase_run.load.ended()));

    phase_run.pool.send_to_all(&format!("hold {LARGE}")).await;
    for _ in 0..LARGE_TURNS {
        phase_run.load.add_one(LARGE);
    }
    let held = phase_run.wait_until(PATIENCE, |phase_run| phase_run.pool.totals().held >= LARGE_TURNS).await;
    report.require("workers hold turns that are too large for a full disk", held, || {
        format!("{} of {LARGE_TURNS}", phase_run.pool.totals().held)
    });
    disk.fill()?;
    let is_full = fill_store(&mut phase_run).await;
    let (calls, failed_before) = (phase_run.load.repeated(), phase_run.pool.totals().failed);
    report
        .require("calls of clients fail on a full disk", is_full, || format!("{calls} client calls failed"));
    phase_run.pool.send_to_all("release").await;
    let noticed =
        phase_run.wait_until(PATIENCE, |phase_run| phase_run.pool.totals().failed > failed_before).await;
    report.require("commits of workers fail on a full disk", noticed, || {
        format!(
            "{failed_before} commits of workers failed before they committed the held turns, and none after that"
        )
    });
    report.figure("disk_full_failed_client_calls", phase_run.load.repeated());
    // The new worker has no space to open the store.
    phase_run.pool.kill(0).await?;
    sleep(Duration::from_secs(1)).await;
    let before = phase_run.load.ended();
    disk.clear()?;

    let went_on = phase_run.wait_until(PATIENCE, |phase_run| phase_run.load.ended() >= before + ENOUGH).await;
    report.require("clients and workers continue when the disk has space again", went_on, || {
        format!("{before} instances had ended, {} later", phase_run.load.ended())
    });
    phase_run.close("disk_full_", report).await
}

/// Adds clients until calls of clients fail and no call succeeds any more: the disk is full, but the files of the store
/// still have free pages. Returns `false` if that takes too long.
async fn fill_store(phase_run: &mut PhaseRun) -> bool {
    let began = Instant::now();
    let stored = |phase_run: &PhaseRun| {
        (phase_run.load.started(), phase_run.load.ended(), phase_run.pool.totals().stored)
    };
    let (mut before, mut failed, mut quiet) = (stored(phase_run), phase_run.load.repeated(), 0);
    while quiet < QUIET_POLLS {
        if began.elapsed() > PATIENCE {
            return false;
        }
        if phase_run.load.repeated() == failed {
            // All clients may be waiting for their instances. A new client has a start to store.
            phase_run.load.add_one(BALLAST);
        }
        sleep(POLL_INTERVAL).await;
        let is_quiet = stored(phase_run) == before && phase_run.load.repeated() > failed;
        quiet = if is_quiet { quiet + 1 } else { 0 };
        (before, failed) = (stored(phase_run), phase_run.load.repeated());
    }
    true
}
