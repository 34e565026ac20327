//! `cargo xtask bench check`: the time of `outlast check` with many running instances in a SQLite file.

use crate::cases::folder;
use crate::measure::usage;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// The longest time of a check of 100,000 instances.
const MOST: Duration = Duration::from_secs(60);

#[derive(clap::Args)]
pub(crate) struct Plan {
    /// The program `outlast`
    outlast: PathBuf,
    /// The example `orders`
    orders: PathBuf,
    /// Running instances
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    instances: u64,
}

/// Fills a store with waiting orders, and checks their program against it. Returns whether the check was fast enough.
pub(crate) fn run(plan: &Plan) -> Result<bool, String> {
    let instances = plan.instances;
    let folder = folder();
    let store = folder.path().join("orders.db");
    let filled = timed(Command::new(&plan.orders).arg("fill").arg(&store).arg(instances.to_string()))?;
    let used = usage::used_by_children(std::process::id());
    let mut check = Command::new(&plan.outlast);
    let checked = timed(check.arg("check").arg("--store").arg(&store).arg("--bin").arg(&plan.orders))?;
    let used = usage::used_by_children(std::process::id()) - used;
    println!(
        "`outlast check` replays {instances} running instances in {:.1} s ({:.1} s of processor time), {} s are allowed; the \
         store was filled in {:.0} s",
        checked.as_secs_f64(),
        used.as_secs_f64(),
        MOST.as_secs(),
        filled.as_secs_f64()
    );
    Ok(checked <= MOST)
}

/// The time of a command, which must succeed.
fn timed(command: &mut Command) -> Result<Duration, String> {
    let since = Instant::now();
    let status = command.status().map_err(|error| format!("{command:?} could not be run: {error}"))?;
    match status.success() {
        true => Ok(since.elapsed()),
        false => Err(format!("{command:?} failed: {status}")),
    }
}
