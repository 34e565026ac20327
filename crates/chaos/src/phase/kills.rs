//! Kills, stops and backups under load: the main phase.

use super::backups::Backups;
use super::goal::Goal;
use super::scene::{Clients, Scene};
use crate::args::Run;
use crate::nemesis::Nemesis;
use crate::report::Report;
use crate::store::Server;
use crate::worker::LEASE;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const WORKERS: usize = 3;
/// If nothing ends for so long, nothing will.
const NO_PROGRESS: Duration = Duration::from_secs(120);
/// Of two kills, none is a third quite often.
const ENOUGH_FOR_A_SHARE: u64 = 10;
const LINE_EVERY: Duration = Duration::from_secs(15);

pub(super) async fn run(run: &Run, folder: PathBuf, report: &mut Report) -> Result<(), String> {
    let goal = Goal::of(run);
    let clients = Clients { in_flight: run.in_flight, ballast: 0, lease: LEASE };
    let mut scene = Scene::open(run, folder.clone(), folder.clone(), clients).await?;
    for _ in 0..WORKERS {
        scene.fleet.add(&[])?;
    }
    let copied = scene.store.can_be_copied();
    let backups = copied.then(|| Backups::start(scene.store.clone(), scene.load.witness(), folder));
    let mut nemesis = Nemesis::new(run.seed, run.pace);
    let began = Instant::now();
    let progressed = hurt(&mut scene, &mut nemesis, &goal, run.kills != Some(0)).await?;
    let took = began.elapsed();
    tell(&nemesis, report);
    report.figure("kill_seconds", took.as_secs());
    if let Some(backups) = backups {
        let copies = backups.finish().await?;
        report.figure("backups", copies.made);
        report.figure("instances_looked_for_in_backups", copies.looked_for);
        report.check("every copy made meanwhile is sound and holds what was acknowledged", &copies.problems);
    }
    if let Some(server) = &scene.server {
        tell_server(server, report);
    }
    let ended = scene.load.ended();
    report.require("something ended every two minutes", progressed, || {
        format!("nothing since {ended} instances")
    });
    report.require("the targets were reached", goal.is_reached(nemesis.kills, ended), || {
        format!("{} kills and {ended} instances after {took:?}, wanted {goal:?}", nemesis.kills)
    });
    if nemesis.kills >= ENOUGH_FOR_A_SHARE {
        let is_third = nemesis.in_commit * 3 >= nemesis.kills;
        report.require("a third of the kills landed between a commit and its answer", is_third, || {
            format!("{} of {}", nemesis.in_commit, nemesis.kills)
        });
    }
    scene.close("", report).await
}

/// Until the goal is reached, or nothing gets on any more: `false`.
async fn hurt(
    scene: &mut Scene,
    nemesis: &mut Nemesis,
    goal: &Goal,
    may_strike: bool,
) -> Result<bool, String> {
    let began = Instant::now();
    let (mut ended, mut progress_at, mut line_at) = (0, began, began);
    while !goal.is_over(began.elapsed(), nemesis.kills, scene.load.ended()) {
        sleep(nemesis.pause()).await;
        scene.fleet.count_heads()?;
        nemesis.resume_due(&mut scene.fleet).await?;
        if may_strike {
            nemesis.strike(&mut scene.fleet).await?;
            if let Some(server) = &mut scene.server {
                nemesis.strike_server(server).await?;
            }
        }
        if scene.load.ended() > ended {
            (ended, progress_at) = (scene.load.ended(), Instant::now());
        } else if progress_at.elapsed() > NO_PROGRESS {
            return Ok(false);
        }
        if line_at.elapsed() > LINE_EVERY {
            line_at = Instant::now();
            let seconds = began.elapsed().as_secs();
            println!(
                "  {seconds:>4} s: {} kills, {} in a commit, {ended} instances",
                nemesis.kills, nemesis.in_commit
            );
        }
    }
    Ok(true)
}

fn tell(nemesis: &Nemesis, report: &mut Report) {
    report.figure("kills", nemesis.kills);
    report.figure("kills_in_commit", nemesis.in_commit);
    report.figure("kills_in_commit_percent", nemesis.in_commit * 100 / nemesis.kills.max(1));
    for (aim, (kills, in_commit)) in &nemesis.by_aim {
        println!("  {kills:>5} kills aimed {aim}, {in_commit} of them between a commit and its answer");
        report.figure(&format!("kills_aimed_{aim}"), *kills);
        report.figure(&format!("kills_aimed_{aim}_in_commit"), *in_commit);
    }
    println!("  {:>5} kills in all, {} between a commit and its answer", nemesis.kills, nemesis.in_commit);
    println!("  {:>5} stops beyond the lease", nemesis.stops);
    report.figure("stops_beyond_lease", nemesis.stops);
}

fn tell_server(server: &Server, report: &mut Report) {
    let figures = [
        ("server_crashes", server.crashes, "times the server ended without a word"),
        ("backend_kills", server.backend_kills, "processes of the server ended under a client"),
        ("connections_cut_in_commit", server.cuts(), "connections were cut in the middle of a commit"),
        ("connections_severed", server.severed, "times all connections were cut"),
    ];
    for (name, count, what) in figures {
        println!("  {count:>5} {what}");
        report.figure(name, count);
    }
}
