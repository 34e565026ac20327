//! A disk that runs full while everybody works, and is cleared later.

use super::disk::SmallDisk;
use super::scene::{Clients, Scene};
use crate::args::{Phase, Run};
use crate::report::Report;
use std::path::PathBuf;
use std::time::Duration;

const SIZE: &str = "24m";
/// Instances that must end before the disk is filled, and again after it was cleared.
const ENOUGH: u64 = 25;
const PATIENCE: Duration = Duration::from_secs(30);

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
    let clients = Clients { in_flight: 16, ballast: 2_000 };
    let mut scene = Scene::open(run, folder, disk.path().to_path_buf(), clients).await?;
    for _ in 0..2 {
        scene.fleet.add(&[])?;
    }
    let worked = scene.until(PATIENCE, |scene| scene.load.ended() >= ENOUGH).await;
    report.require("the phase began", worked, || format!("{} instances ended", scene.load.ended()));

    disk.fill()?;
    let is_full = |scene: &Scene| scene.load.repeated() > 0 && scene.fleet.totals().failed > 0;
    let noticed = scene.until(PATIENCE, is_full).await;
    let (calls, commits) = (scene.load.repeated(), scene.fleet.totals().failed);
    report.require("a full disk is told to clients and workers", noticed, || {
        format!("{calls} client calls and {commits} commits of workers failed")
    });
    // Its successor finds no room to open the store in.
    scene.fleet.kill(0).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = scene.load.ended();
    disk.clear()?;

    let went_on = scene.until(PATIENCE, |scene| scene.load.ended() >= before + ENOUGH).await;
    report.require("everybody goes on when there is room again", went_on, || {
        format!("{before} instances had ended, {} later", scene.load.ended())
    });
    scene.close("disk_full_", report).await
}
