//! Kills, stops and backups under load: the main phase.

use super::backups::Backups;
use super::goal::{Goal, shares};
use super::phase_run::{Clients, PhaseRun};
use crate::args::{Phase, Run};
use crate::report::Report;
use crate::store::Server;
use crate::worker::LEASE;
use crate::worker_faults::WorkerFaults;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const WORKERS: usize = 3;
/// If no instance ends for this long, the phase fails.
const NO_PROGRESS: Duration = Duration::from_secs(120);
/// With fewer kills than this, the share of kills in a commit is random.
const ENOUGH_FOR_A_SHARE: u64 = 10;
const LINE_EVERY: Duration = Duration::from_secs(15);

/// Runs the phase on one store after the other, each with a verification of its own, and adds up the figures. A failed check
/// ends the phase.
pub(super) async fn run(run: &Run, folder: PathBuf, report: &mut Report) -> Result<(), String> {
    let (began, shares) = (Instant::now(), shares(run));
    let stores = shares.len();
    for (number, mut share) in (1..).zip(shares) {
        let mut own = folder.clone();
        if stores > 1 {
            println!("  store {number} of {stores}");
            own.set_file_name(format!("{}-{number}", Phase::Kills));
            std::fs::create_dir_all(&own).map_err(|error| format!("{}: {error}", own.display()))?;
        }
        share.minutes = run.minutes.map(|minutes| minutes - began.elapsed().as_secs_f64() / 60.0);
        let mut part = Report::default();
        let done = run_on_one_store(&share, own, &mut part).await;
        let all_passed = part.all_passed();
        report.add(part);
        done?;
        if !all_passed {
            break;
        }
    }
    let percent = report.count("kills_in_commit") * 100 / report.count("kills").max(1);
    report.figure("kills_in_commit_percent", percent);
    if stores > 1 {
        report.figure("stores", stores);
    }
    Ok(())
}

async fn run_on_one_store(run: &Run, folder: PathBuf, report: &mut Report) -> Result<(), String> {
    let goal = Goal::of(run);
    let clients = Clients { in_flight: run.in_flight, ballast: 0, lease: LEASE };
    let mut phase_run = PhaseRun::open(run, folder.clone(), folder.clone(), clients).await?;
    for _ in 0..WORKERS {
        phase_run.pool.add(&[])?;
    }
    let copied = phase_run.store.can_be_copied();
    let backups =
        copied.then(|| Backups::start(phase_run.store.clone(), phase_run.load.client_view(), folder));
    let mut faults = WorkerFaults::new(run.seed, run.pace);
    let began = Instant::now();
    let progressed = inject_faults(&mut phase_run, &mut faults, &goal, run.kills != Some(0)).await?;
    let took = began.elapsed();
    report_kills(&faults, report);
    report.figure("kill_seconds", took.as_secs());
    if let Some(backups) = backups {
        let copies = backups.finish().await?;
        report.figure("backups", copies.made);
        report.figure("instances_looked_for_in_backups", copies.looked_for);
        report.check("every backup is intact and holds the acknowledged instances", &copies.problems);
    }
    if let Some(server) = &phase_run.server {
        report_server_faults(server, report);
    }
    let ended = phase_run.load.ended();
    report.require("an instance ended every two minutes", progressed, || {
        format!("no instance ended after the first {ended}")
    });
    report.require("the targets were reached", goal.is_reached(faults.kills, ended), || {
        format!("{} kills and {ended} instances after {took:?}, wanted {goal:?}", faults.kills)
    });
    if faults.kills >= ENOUGH_FOR_A_SHARE {
        let is_third = faults.in_commit * 3 >= faults.kills;
        report.require("a third of the kills happened between a commit and its answer", is_third, || {
            format!("{} of {}", faults.in_commit, faults.kills)
        });
    }
    phase_run.close("", report).await
}

/// Injects faults until the goal is reached. Returns `false` if no instance ends for too long.
async fn inject_faults(
    phase_run: &mut PhaseRun,
    faults: &mut WorkerFaults,
    goal: &Goal,
    may_inject: bool,
) -> Result<bool, String> {
    let began = Instant::now();
    let (mut ended, mut progress_at, mut line_at) = (0, began, began);
    while !goal.is_over(began.elapsed(), faults.kills, phase_run.load.ended()) {
        sleep(faults.pause()).await;
        phase_run.pool.replace_exited()?;
        faults.resume_due(&mut phase_run.pool).await?;
        if may_inject {
            faults.inject(&mut phase_run.pool).await?;
            if let Some(server) = &mut phase_run.server {
                faults.inject_into_server(server).await?;
            }
        }
        if phase_run.load.ended() > ended {
            (ended, progress_at) = (phase_run.load.ended(), Instant::now());
        } else if progress_at.elapsed() > NO_PROGRESS {
            return Ok(false);
        }
        if line_at.elapsed() > LINE_EVERY {
            line_at = Instant::now();
            let seconds = began.elapsed().as_secs();
            println!(
                "  {seconds:>4} s: {} kills, {} in a commit, {ended} instances",
                faults.kills, faults.in_commit
            );
        }
    }
    Ok(true)
}

fn report_kills(faults: &WorkerFaults, report: &mut Report) {
    report.figure("kills", faults.kills);
    report.figure("kills_in_commit", faults.in_commit);
    for (point, (kills, in_commit)) in &faults.kills_by_point {
        println!(
            "  {kills:>5} kills at the point {point}, {in_commit} of them between a commit and its answer"
        );
        report.figure(&format!("kills_aimed_{point}"), *kills);
        report.figure(&format!("kills_aimed_{point}_in_commit"), *in_commit);
    }
    println!("  {:>5} kills in all, {} between a commit and its answer", faults.kills, faults.in_commit);
    println!("  {:>5} stops longer than a lease", faults.stops);
    report.figure("stops_beyond_lease", faults.stops);
}

fn report_server_faults(server: &Server, report: &mut Report) {
    let figures = [
        ("server_crashes", server.crashes, "crashes of the server"),
        ("backend_kills", server.backend_kills, "backends of the server terminated"),
        ("connections_cut_in_commit", server.cuts(), "connections cut in a commit"),
        ("connections_severed", server.severed, "times all connections were cut"),
    ];
    for (name, count, what) in figures {
        println!("  {count:>5} {what}");
        report.figure(name, count);
    }
}
