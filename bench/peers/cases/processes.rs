//! The backlog of hellos, run by several processes.

use super::backend::{Backend, greeting};
use super::progress::is_over;
use crate::measure::{Args, Outcome, Tally};
use std::io::{BufRead as _, BufReader, Read as _};
use std::ops::Range;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const NAME: &str = "processes";
/// The argument of the other processes, and the line that they print when they are ready.
const OTHER: &str = "other-process";
const READY: &str = "ready";
/// The number of instances that are started last. They have hardly begun when this process reads the first of them.
const TAIL: usize = 64;

/// This process starts the instances and runs its share of them. It reads their ends from the store, because the other
/// processes do not report to it. It begins with the instances that were started last, so that it reads little while
/// instances run. The measured time ends when the process last had to wait.
pub(super) async fn run(backend: &Backend, args: &Args) -> Result<Outcome, String> {
    let (count, processes) = (args.number("--count", 400)?, args.number("--processes", 2)?);
    let others = (1..processes).map(|_| Other::start()).collect::<Result<Vec<_>, _>>()?;
    let mut outcome = Outcome::new(backend.durability, count);
    let tally = Tally::begin((backend.counts)());
    let begun = Instant::now();
    backend.start_all("Hello", count).await;
    let started = begun.elapsed();
    let early = count.saturating_sub(TAIL);
    let late = last_wait(backend, early..count, begun).await;
    // Nearly all instances have ended: the rest of the time is reads.
    tally.end((backend.counts)(), &mut outcome, count, "per orchestration");
    let time = last_wait(backend, 0..early, begun).await.max(late).max(started);
    backend.census(&mut outcome, greeting).await;
    outcome.figure("throughput", outcome.completed as f64 / time.as_secs_f64(), "orchestrations/s");
    drop(others);
    Ok(outcome)
}

/// Reads until all of these instances have ended, the last one first; returns the time of the last pause.
async fn last_wait(backend: &Backend, numbers: Range<usize>, begun: Instant) -> Duration {
    let mut waited = Duration::ZERO;
    for number in numbers.rev() {
        while !is_over(&backend.client, number).await && begun.elapsed() < backend.limit {
            tokio::time::sleep(Duration::from_millis(1)).await;
            waited = begun.elapsed();
        }
    }
    waited
}

/// Runs instances until the first process closes its standard input.
pub(super) async fn other(backend: &Backend) -> Result<Outcome, String> {
    println!("{READY}");
    let waiting = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    waiting.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
    Ok(Outcome::new(backend.durability, 0))
}

/// Another process with the same store and options.
pub(super) struct Other(Child);

impl Other {
    fn start() -> Result<Self, String> {
        Self::with_args(NAME, &[])
    }

    /// A process for a part of a scenario.
    pub(super) fn with_role(scenario: &str, role: &str) -> Result<Self, String> {
        Self::with_args(scenario, &["--role", role])
    }

    fn with_args(scenario: &str, more: &[&str]) -> Result<Self, String> {
        let text = |error: std::io::Error| format!("another process: {error}");
        let args = std::env::args().skip(1).map(|arg| if arg == scenario { OTHER.to_string() } else { arg });
        let mut command = Command::new(std::env::current_exe().map_err(text)?);
        let mut child = command
            .args(args)
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(text)?;
        let output = child.stdout.as_mut().ok_or("another process: it has no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).map_err(text)?;
        match line.trim_end() {
            READY => Ok(Self(child)),
            said => Err(format!("another process said {said:?}")),
        }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // The process ends when its input is closed. Its exit status is not needed.
        let _ = self.0.wait();
    }
}
