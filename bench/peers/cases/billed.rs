//! Scenarios on a store that bills requests: the requests of a hello, of a step and of idle time. Client, turns and activities
//! run in one process, or `--apart` in others. The store counts the requests of all processes.

use super::backend::{Backend, greeting, sum};
use super::processes::Other;
use super::progress::is_over;
use crate::measure::{Args, Outcome, Tally, rig};
use std::time::{Duration, Instant};

/// How often the end of an instance is read: seldom, because each look is a request.
const LOOK: Duration = Duration::from_millis(250);

/// The processes beside this one: none, one with turns and activities (`client`), or one for each (`client-and-work`).
pub(super) fn others(args: &Args) -> Result<Vec<Other>, String> {
    // A process that another process started has a role.
    if !args.text("--role", "").is_empty() {
        return Ok(Vec::new());
    }
    let roles: &[&str] = match args.text("--apart", "") {
        "" => &[],
        "client" => &["all"],
        "client-and-work" => &["turns", "work"],
        other => return Err(format!("--apart is client or client-and-work, not '{other}'")),
    };
    roles.iter().map(|role| Other::with_role(&args.scenario, role)).collect()
}

/// A backlog of hellos.
pub(super) async fn hello(backend: &Backend, args: &Args) -> Result<Outcome, String> {
    let count = args.number("--count", 40)?;
    let mut outcome = Outcome::new(backend.durability, count);
    let tally = Tally::begin((backend.counts)());
    backend.start_all("Hello", count).await;
    all_over(backend, count).await;
    tally.end((backend.counts)(), &mut outcome, count, "per hello");
    backend.census(&mut outcome, greeting).await;
    Ok(outcome)
}

/// One chain of activities.
pub(super) async fn chain(backend: &Backend, args: &Args) -> Result<Outcome, String> {
    let steps = args.number("--steps", 10)?;
    let mut outcome = Outcome::new(backend.durability, 1);
    let tally = Tally::begin((backend.counts)());
    backend.start_all("Chain", 1).await;
    all_over(backend, 1).await;
    tally.end((backend.counts)(), &mut outcome, steps, "per step");
    backend.census(&mut outcome, |_| sum(steps)).await;
    Ok(outcome)
}

/// Hellos and idle time among many instances that wait for a timer. `--count` of them are started, and the store makes
/// `--copies` of each.
pub(super) async fn among(backend: &Backend, args: &Args) -> Result<Outcome, String> {
    let (asleep, copies) = (args.number("--count", 100)?, args.number("--copies", 0)?);
    let (hellos, seconds) = (args.number("--samples", 10)?, args.number("--seconds", 15)?);
    let mut outcome = Outcome::new(backend.durability, asleep + hellos);
    outcome.completed += backend.sleepers(asleep).await;
    if copies > 0 {
        rig::copy_instances("case-", copies)?;
    }
    let (tally, idle) = (Tally::begin((backend.counts)()), Window::begin());
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let idle_rate = idle.requests() / idle.begun.elapsed().as_secs_f64();
    tally.end_as("idle_", (backend.counts)(), &mut outcome, seconds as f64 / 60.0, "per idle minute");
    let (tally, busy) = (Tally::begin((backend.counts)()), Window::begin());
    backend.start_numbers("Hello", asleep..asleep + hellos).await;
    for number in (asleep..asleep + hellos).rev() {
        over(backend, number).await;
    }
    // An emulator with many documents is slow, and polls go on meanwhile.
    let above_idle = busy.requests() - idle_rate * busy.begun.elapsed().as_secs_f64();
    tally.end((backend.counts)(), &mut outcome, hellos, "per hello");
    outcome.figure("requests_above_idle", above_idle.max(0.0) / hellos as f64, "per hello");
    backend.count_hellos(&mut outcome, asleep..asleep + hellos).await;
    // The first call may count every instance; the next one shows what a later call costs.
    for prefix in ["first_metrics_", "metrics_"] {
        let tally = Tally::begin((backend.counts)());
        backend.client.get_system_metrics().await.map_err(|error| error.to_string())?;
        tally.end_as(prefix, (backend.counts)(), &mut outcome, 1.0, "per call of get_system_metrics");
    }
    Ok(outcome)
}

/// The requests since a moment.
struct Window {
    begun: Instant,
    before: u64,
}

impl Window {
    fn begin() -> Self {
        Self { begun: Instant::now(), before: counted() }
    }

    fn requests(&self) -> f64 {
        counted().saturating_sub(self.before) as f64
    }
}

fn counted() -> u64 {
    rig::counts().into_iter().find(|(name, _)| *name == "requests").map_or(0, |(_, count)| count)
}

/// Waits for the instances that were started last; nearly all of the others have ended before them.
async fn all_over(backend: &Backend, count: usize) {
    for number in (count.saturating_sub(4)..count).rev() {
        over(backend, number).await;
    }
}

async fn over(backend: &Backend, number: usize) {
    let begun = Instant::now();
    while !is_over(&backend.client, number).await && begun.elapsed() < backend.limit {
        tokio::time::sleep(LOOK).await;
    }
}
