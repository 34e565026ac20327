//! The scenarios of `cargo xtask bench compare` that durare has too: hello, chains, one long chain, hello when idle.
//!
//! Workflows of durare run in the process that starts them, so there is no number of dispatchers.
#![forbid(unsafe_code)]

#[path = "../../measure/mod.rs"]
mod measure;
mod workflows;

use durare::{
    DurableEngine, PostgresProvider, SqliteProvider, StateProvider, WorkflowHandle, WorkflowOptions,
};
use measure::{Args, Counts, Outcome, Tally, answer, ms, on_two_threads, percentile, steps};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const OPTIONS: &[&str] = &["--count", "--steps", "--store", "--synchronous", "--dir"];

const PER_ORCHESTRATION: &str = "per orchestration";

/// Clients that start a backlog.
const STARTERS: usize = 8;

fn main() -> ExitCode {
    let args = Args::parse(std::env::args().skip(1), OPTIONS);
    answer(args.and_then(|args| on_two_threads(run(&args))))
}

async fn run(args: &Args) -> Result<Outcome, String> {
    let (count, steps) = (args.number("--count", 400)?, args.number("--steps", 10)?);
    let (store, durability) = open(args).await?;
    let mut builder = DurableEngine::builder(store);
    builder.register("Hello", workflows::hello).register("Chain", workflows::chain);
    let engine = Arc::new(builder.build().await.map_err(text)?);
    engine.launch().await.map_err(text)?;
    let world = World { engine, durability };
    world.run("warm-up", "Hello", 0).await?;
    let outcome = match args.scenario.as_str() {
        "hello" => world.hello(count).await,
        "hello-idle" => world.idle(count).await,
        "chains" => world.chains(count, steps).await,
        "long-chain" => world.long_chain(steps).await,
        other => Err(format!("unknown scenario '{other}'")),
    };
    world.engine.shutdown(Duration::ZERO).await.map_err(text)?;
    outcome
}

async fn open(args: &Args) -> Result<(Arc<dyn StateProvider>, &'static str), String> {
    match args.text("--store", "sqlite") {
        "sqlite" => {
            let (store, durability) = sqlite(args).await?;
            Ok((Arc::new(store), durability))
        }
        "postgres" => {
            let store = PostgresProvider::connect(&measure::server::url()?).await.map_err(text)?;
            Ok((Arc::new(store), "FULL"))
        }
        other => Err(format!("unknown store '{other}'")),
    }
}

/// Opens the store with durare's own durability, or with the same options and `synchronous = FULL`.
async fn sqlite(args: &Args) -> Result<(SqliteProvider, &'static str), String> {
    let path = Path::new(args.text("--dir", ".")).join("case.db");
    match args.text("--synchronous", "normal") {
        "normal" => {
            let url = format!("sqlite://{}", path.display());
            Ok((SqliteProvider::connect(&url).await.map_err(text)?, "NORMAL"))
        }
        "full" => {
            let options = SqliteConnectOptions::new()
                .filename(path)
                .create_if_missing(true)
                .foreign_keys(true)
                .journal_mode(SqliteJournalMode::Wal)
                .synchronous(SqliteSynchronous::Full)
                .busy_timeout(Duration::from_secs(5));
            let pool = SqlitePoolOptions::new().max_connections(5).connect_with(options).await;
            Ok((SqliteProvider::from_pool(pool.map_err(text)?), "FULL"))
        }
        other => Err(format!("--synchronous is full or normal, not '{other}'")),
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

struct World {
    engine: Arc<DurableEngine>,
    durability: &'static str,
}

impl World {
    async fn hello(&self, count: usize) -> Result<Outcome, String> {
        let inputs = (0..count).collect();
        let tally = Tally::begin(Counts::new());
        let (mut outcome, time) = self.backlog("Hello", inputs, workflows::greeting).await?;
        tally.end(Counts::new(), &mut outcome, count, PER_ORCHESTRATION);
        outcome.figure("throughput", outcome.completed as f64 / time.as_secs_f64(), "orchestrations/s");
        Ok(outcome)
    }

    async fn chains(&self, count: usize, steps: usize) -> Result<Outcome, String> {
        let tally = Tally::begin(Counts::new());
        let (mut outcome, time) = self.backlog("Chain", vec![steps; count], workflows::sum).await?;
        tally.end(Counts::new(), &mut outcome, count, PER_ORCHESTRATION);
        let activities = (outcome.completed * steps) as f64;
        outcome.figure("throughput", activities / time.as_secs_f64(), "activities/s");
        Ok(outcome)
    }

    async fn long_chain(&self, length: usize) -> Result<Outcome, String> {
        let tally = Tally::begin(Counts::new());
        let (mut outcome, time) = self.backlog("Chain", vec![length], workflows::sum).await?;
        tally.end(Counts::new(), &mut outcome, length, "per step");
        let ran = workflows::steps_ran();
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
            let output = self.run(&format!("case-{number:06}"), "Hello", number).await?;
            times.push(ms(begun.elapsed()));
            outcome.ended(output.as_deref(), &workflows::greeting(number));
        }
        tally.end(Counts::new(), &mut outcome, count, PER_ORCHESTRATION);
        outcome.figure("p50", percentile(&times, 50), "ms");
        outcome.figure("p99", percentile(&times, 99), "ms");
        Ok(outcome)
    }

    /// Starts all workflows as fast as a few clients can, and waits for every result.
    async fn backlog(
        &self,
        workflow: &'static str,
        inputs: Vec<usize>,
        right: fn(usize) -> String,
    ) -> Result<(Outcome, Duration), String> {
        let mut outcome = Outcome::new(self.durability, inputs.len());
        let inputs = Arc::new(inputs);
        let begun = Instant::now();
        let mut starters = JoinSet::new();
        for first in 0..STARTERS {
            let (engine, inputs) = (Arc::clone(&self.engine), Arc::clone(&inputs));
            starters.spawn(async move {
                let mut handles = Vec::new();
                for number in (first..inputs.len()).step_by(STARTERS) {
                    let id = format!("case-{number:06}");
                    handles.push((inputs[number], start(&engine, &id, workflow, inputs[number]).await?));
                }
                let mut outputs = Vec::new();
                for (input, handle) in handles {
                    outputs.push((input, handle.result().await.ok()));
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

    async fn run(&self, id: &str, workflow: &str, input: usize) -> Result<Option<String>, String> {
        Ok(start(&self.engine, id, workflow, input).await?.result().await.ok())
    }
}

async fn start(
    engine: &DurableEngine,
    id: &str,
    workflow: &str,
    input: usize,
) -> Result<WorkflowHandle<String>, String> {
    engine.start(workflow, input, WorkflowOptions::with_id(id)).await.map_err(text)
}
