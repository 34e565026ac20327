//! A disk that runs full while clients and workers have something to store, and is cleared later.
//!
//! Which call meets the full disk first is left to chance nowhere. Workers hold turns that are larger than any room that is
//! left, the disk is filled, new clients start instances until not even a small call gets through, and only then do the
//! workers give their turns to the store.

use super::disk::SmallDisk;
use super::scene::{Clients, Scene};
use crate::args::{Phase, Run};
use crate::report::Report;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const SIZE: &str = "40m";
/// Instances that must end before the disk is filled, and again after it was cleared.
const ENOUGH: u64 = 25;
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(100);

/// Bytes that a start carries. A client that cannot store them leaves less room than that.
const BALLAST: usize = 2_000;
/// Turns that workers hold, and the bytes of each: far more than the room that such a client leaves.
const LARGE_TURNS: u64 = 2;
const LARGE: usize = 512 * 1024;
/// Nothing gets through for so many looks: the disk is full for calls of any size.
const QUIET_LOOKS: u32 = 5;
/// Workers keep the leases of the turns that they hold.
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
    let mut scene = Scene::open(run, folder, disk.path().to_path_buf(), clients).await?;
    for _ in 0..2 {
        scene.fleet.add(&[])?;
    }
    let worked = scene.until(PATIENCE, |scene| scene.load.ended() >= ENOUGH).await;
    report.require("the phase began", worked, || format!("{} instances ended", scene.load.ended()));

    scene.fleet.order_all(&format!("hold {LARGE}")).await;
    for _ in 0..LARGE_TURNS {
        scene.load.add_one(LARGE);
    }
    let held = scene.until(PATIENCE, |scene| scene.fleet.totals().held >= LARGE_TURNS).await;
    report.require("workers hold turns that are too large for a full disk", held, || {
        format!("{} of {LARGE_TURNS}", scene.fleet.totals().held)
    });
    disk.fill()?;
    let is_full = fill_store(&mut scene).await;
    let (calls, failed_before) = (scene.load.repeated(), scene.fleet.totals().failed);
    report.require("a full disk is told to clients", is_full, || format!("{calls} client calls failed"));
    scene.fleet.order_all("release").await;
    let noticed = scene.until(PATIENCE, |scene| scene.fleet.totals().failed > failed_before).await;
    report.require("a full disk is told to workers", noticed, || {
        format!(
            "{failed_before} commits of workers failed before they had a turn to store, and none after it"
        )
    });
    report.figure("disk_full_failed_client_calls", scene.load.repeated());
    // Its successor finds no room to open the store in.
    scene.fleet.kill(0).await?;
    sleep(Duration::from_secs(1)).await;
    let before = scene.load.ended();
    disk.clear()?;

    let went_on = scene.until(PATIENCE, |scene| scene.load.ended() >= before + ENOUGH).await;
    report.require("everybody goes on when there is room again", went_on, || {
        format!("{before} instances had ended, {} later", scene.load.ended())
    });
    scene.close("disk_full_", report).await
}

/// Adds clients until calls of clients fail and nothing gets through any more. The disk is full, but the store has some
/// room in its files. `false` if that takes too long.
async fn fill_store(scene: &mut Scene) -> bool {
    let began = Instant::now();
    let stored = |scene: &Scene| (scene.load.started(), scene.load.ended(), scene.fleet.totals().stored);
    let (mut before, mut failed, mut quiet) = (stored(scene), scene.load.repeated(), 0);
    while quiet < QUIET_LOOKS {
        if began.elapsed() > PATIENCE {
            return false;
        }
        if scene.load.repeated() == failed {
            // All clients may be waiting for their instances. One more has something to store.
            scene.load.add_one(BALLAST);
        }
        sleep(LOOK).await;
        let is_quiet = stored(scene) == before && scene.load.repeated() > failed;
        quiet = if is_quiet { quiet + 1 } else { 0 };
        (before, failed) = (stored(scene), scene.load.repeated());
    }
    true
}
