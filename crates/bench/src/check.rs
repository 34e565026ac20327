//! `cargo xtask bench check`: the time of `outlast check` with many running instances in a SQLite file.

use crate::cases::folder;
use crate::measure::usage;
use std::process::Command;
use std::time::{Duration, Instant};

/// The longest time of a check of 100,000 instances.
const MOST: Duration = Duration::from_secs(60);

/// Fills a store with waiting orders, and checks their program against it. Returns whether the check was fast enough.
pub(crate) fn main(mut args: impl Iterator<Item = String>) -> Result<bool, String> {
    let (Some(command), Some(program)) = (args.next(), args.next()) else {
        return Err("give the paths of `outlast` and of the example `orders`".to_string());
    };
    let instances: u64 = match (args.next().as_deref(), args.next()) {
        (None, _) => 100_000,
        (Some("--instances"), Some(number)) => {
            number.parse().map_err(|_| format!("--instances is a number, not '{number}'"))?
        }
        (Some(other), _) => return Err(format!("unknown option '{other}'")),
    };
    let folder = folder();
    let store = folder.path().join("orders.db");
    let filled = timed(Command::new(&program).arg("fill").arg(&store).arg(instances.to_string()))?;
    let used = usage::used_by_children(std::process::id());
    let mut check = Command::new(&command);
    let checked = timed(check.arg("check").arg("--store").arg(&store).arg("--bin").arg(&program))?;
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
