//! The scenarios of `cargo xtask bench compare` for libraries that run a workflow in the process that starts it: hello,
//! chains, one long chain, hello when idle. Such a library has no number of dispatchers.

#[path = "../measure/mod.rs"]
pub(crate) mod measure;
pub(crate) mod program;

use measure::{Args, Counts, Outcome, Tally, ms, percentile, steps};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Clients that start a backlog.
const STARTERS: usize = 8;
const PER_ORCHESTRATION: &str = "per orchestration";

/// The workflows that a library registers.
#[derive(Clone, Copy)]
pub(crate) enum Workflow {
    Hello,
    Chain,
}

/// A library with an open store.
pub(crate) trait Library: Send + Sync + 'static {
    /// Starts a workflow. The inner future is its output, `None` if it failed.
    fn start(
        &self,
        id: String,
        workflow: Workflow,
        input: usize,
    ) -> impl Future<Output = Result<impl Future<Output = Option<String>> + Send, String>> + Send;
}

/// Runs the scenario that the arguments name.
pub(crate) async fn run<L: Library>(
    library: &Arc<L>,
    durability: &'static str,
    args: &Args,
) -> Result<Outcome, String> {
    let (count, steps) = (args.number("--count", 400)?, args.number("--steps", 10)?);
    let backend = Backend { library: Arc::clone(library), durability };
    backend.run("warm-up", 0).await?;
    match args.scenario.as_str() {
        "hello" => backend.hello(count).await,
        "hello-idle" => backend.idle(count).await,
        "chains" => backend.chains(count, steps).await,
        "long-chain" => backend.long_chain(steps).await,
        other => Err(format!("unknown scenario '{other}'")),
    }
}

pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

struct Backend<L> {
    library: Arc<L>,
    durability: &'static str,
}

impl<L: Library> Backend<L> {
    async fn hello(&self, count: usize) -> Result<Outcome, String> {
        let inputs = (0..count).collect();
        let tally = Tally::begin(Counts::new());
        let (mut outcome, time) = self.backlog(Workflow::Hello, inputs, program::greeting).await?;
        tally.end(Counts::new(), &mut outcome, count, PER_ORCHESTRATION);
        outcome.figure("throughput", outcome.completed as f64 / time.as_secs_f64(), "orchestrations/s");
        Ok(outcome)
    }

    async fn chains(&self, count: usize, steps: usize) -> Result<Outcome, String> {
        let tally = Tally::begin(Counts::new());
        let (mut outcome, time) = self.backlog(Workflow::Chain, vec![steps; count], program::sum).await?;
        tally.end(Counts::new(), &mut outcome, count, PER_ORCHESTRATION);
        let activities = (outcome.completed * steps) as f64;
        outcome.figure("throughput", activities / time.as_secs_f64(), "activities/s");
        Ok(outcome)
    }

    async fn long_chain(&self, length: usize) -> Result<Outcome, String> {
        let tally = Tally::begin(Counts::new());
        let (mut outcome, time) = self.backlog(Workflow::Chain, vec![length], program::sum).await?;
        tally.end(Counts::new(), &mut outcome, length, "per step");
        let ran = program::steps_ran();
        outcome.figure("step", ms(time) / ran.len().max(1) as f64, "ms");
        steps(&mut outcome, &ran);
        Ok(outcome)
    }

    /// Runs one workflow at a time, with pauses of uneven length, like the scenario of the other side.
    async fn idle(&self, count: usize) -> Result<Outcome, String> {
        let mut outcome = Outcome::new(self.durability, count);
        let mut times = Vec::new();
        let tally = Tally::begin(Counts::new());
        for number in 0..count {
            tokio::time::sleep(Duration::from_millis(20 + number as u64 * 37 % 100)).await;
            let begun = Instant::now();
            let output = self.run(&format!("case-{number:06}"), number).await?;
            times.push(ms(begun.elapsed()));
            outcome.ended(output.as_deref(), &program::greeting(number));
        }
        tally.end(Counts::new(), &mut outcome, count, PER_ORCHESTRATION);
        outcome.figure("p50", percentile(&times, 50), "ms");
        outcome.figure("p99", percentile(&times, 99), "ms");
        Ok(outcome)
    }

    /// Starts all workflows as fast as a few clients can, and waits for every result.
    async fn backlog(
        &self,
        workflow: Workflow,
        inputs: Vec<usize>,
        right: fn(usize) -> String,
    ) -> Result<(Outcome, Duration), String> {
        let mut outcome = Outcome::new(self.durability, inputs.len());
        let inputs = Arc::new(inputs);
        let begun = Instant::now();
        let mut starters = JoinSet::new();
        for first in 0..STARTERS {
            let (library, inputs) = (Arc::clone(&self.library), Arc::clone(&inputs));
            starters.spawn(async move {
                let mut started = Vec::new();
                for number in (first..inputs.len()).step_by(STARTERS) {
                    let id = format!("case-{number:06}");
                    started.push((inputs[number], library.start(id, workflow, inputs[number]).await?));
                }
                let mut outputs = Vec::new();
                for (input, output) in started {
                    outputs.push((input, output.await));
                }
                Ok::<_, String>(outputs)
            });
        }
        let mut outputs = Vec::new();
        while let Some(of_one) = starters.join_next().await {
            outputs.extend(of_one.map_err(text)??);
        }
        let time = begun.elapsed();
        for (input, output) in outputs {
            outcome.ended(output.as_deref(), &right(input));
        }
        Ok((outcome, time))
    }

    async fn run(&self, id: &str, input: usize) -> Result<Option<String>, String> {
        Ok(self.library.start(id.to_string(), Workflow::Hello, input).await?.await)
    }
}
