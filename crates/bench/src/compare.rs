//! The floors of `cargo xtask bench compare`: one measurement per process, one line of JSON.

use crate::floor::{self, Batch, SOUND_1_PER_SECOND, SOUND_64_PER_SECOND, STEPS};
use crate::measure::{Args, Outcome, answer, ms, on_two_threads, percentile, server};
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// `--per-transaction` counts steps, `--hellos-per-transaction` whole hello cycles.
const OPTIONS: &[&str] =
    &["--count", "--per-transaction", "--hellos-per-transaction", "--connections", "--synchronous", "--dir"];

const PER_SECOND: &str = "orchestrations/s";

pub(crate) fn main(args: impl Iterator<Item = String>) -> ExitCode {
    answer(Args::parse(args, OPTIONS).and_then(|args| run(&args)))
}

fn run(args: &Args) -> Result<Outcome, String> {
    let count = args.number("--count", 1_000)?;
    let folder = Path::new(args.text("--dir", "."));
    match args.scenario.as_str() {
        "hello" => hello(args, folder, count),
        "hello-postgres" => hello_postgres(args, count),
        "fsync" => fsync(folder, count),
        other => Err(format!("unknown floor '{other}'")),
    }
}

/// The floor in SQLite.
fn hello(args: &Args, folder: &Path, count: usize) -> Result<Outcome, String> {
    let durability = match args.text("--synchronous", "full") {
        "full" => "FULL",
        "normal" => "NORMAL",
        other => return Err(format!("--synchronous is full or normal, not '{other}'")),
    };
    let batch = match args.number("--hellos-per-transaction", 0)? {
        0 => Batch::Steps(args.number("--per-transaction", 1)?),
        hellos => Batch::Hellos(hellos),
    };
    let (each, completed) = floor::run(folder, count, batch, durability);
    let mut outcome = Outcome::new(durability, count);
    outcome.completed = completed;
    outcome.figure("throughput", 1.0 / each.as_secs_f64(), PER_SECOND);
    if batch == Batch::Steps(1) {
        outcome.figure("transaction", ms(each) / STEPS as f64, "ms");
    }
    let pin = match (durability, batch) {
        ("FULL", Batch::Steps(1)) => SOUND_1_PER_SECOND,
        ("FULL", Batch::Steps(64)) => SOUND_64_PER_SECOND,
        _ => return Ok(outcome),
    };
    outcome.figure("pin", pin, PER_SECOND);
    Ok(outcome)
}

/// The floor in PostgreSQL.
fn hello_postgres(args: &Args, count: usize) -> Result<Outcome, String> {
    let (per_transaction, connections) =
        (args.number("--per-transaction", 64)?, args.number("--connections", 2)?);
    let url = server::url()?;
    let mut outcome = Outcome::new("FULL", count);
    let measure = floor::postgres::run(&url, per_transaction, connections, &mut outcome);
    let each = on_two_threads(measure).map_err(|error| format!("{error:?}"))?;
    outcome.figure("throughput", 1.0 / each.as_secs_f64(), PER_SECOND);
    Ok(outcome)
}

/// The time to write and sync 8 kB in a file that already has its size.
fn fsync(folder: &Path, count: usize) -> Result<Outcome, String> {
    let mut outcome = Outcome::new("FULL", count);
    let mut times = Vec::with_capacity(count);
    let mut measure = || -> std::io::Result<()> {
        let block = [0x5a_u8; 8192];
        let mut file = std::fs::File::create(folder.join("fsync"))?;
        file.write_all(&block.repeat(64))?;
        file.sync_all()?;
        for n in 0..count {
            if n % 64 == 0 {
                file.rewind()?;
            }
            let begun = Instant::now();
            file.write_all(&block)?;
            file.sync_data()?;
            times.push(ms(begun.elapsed()));
        }
        Ok(())
    };
    measure().map_err(|error| format!("{}: {error}", folder.display()))?;
    outcome.completed = times.len();
    outcome.figure("p50", percentile(&times, 50), "ms");
    outcome.figure("p99", percentile(&times, 99), "ms");
    Ok(outcome)
}
