//! The scenarios of `cargo xtask bench compare` that durare has too.
#![forbid(unsafe_code)]

#[path = "../../in_process/mod.rs"]
mod in_process;

use durare::{
    DurableContext, DurableEngine, PostgresProvider, Result as DurareResult, SqliteProvider, StateProvider,
    WorkflowOptions,
};
use in_process::measure::{Args, Outcome, answer, on_two_threads, server};
use in_process::{Library, Workflow, program, text};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

const OPTIONS: &[&str] = &["--count", "--steps", "--store", "--synchronous", "--dir"];

fn main() -> ExitCode {
    let args = Args::parse(std::env::args().skip(1), OPTIONS);
    answer(args.and_then(|args| on_two_threads(run(&args))))
}

async fn run(args: &Args) -> Result<Outcome, String> {
    let (store, durability) = open(args).await?;
    let mut builder = DurableEngine::builder(store);
    builder.register("Hello", hello).register("Chain", chain);
    let engine = Arc::new(Durare(builder.build().await.map_err(text)?));
    engine.0.launch().await.map_err(text)?;
    let outcome = in_process::run(&engine, durability, args).await;
    engine.0.shutdown(Duration::ZERO).await.map_err(text)?;
    outcome
}

struct Durare(DurableEngine);

impl Library for Durare {
    async fn start(
        &self,
        id: String,
        workflow: Workflow,
        input: usize,
    ) -> Result<impl Future<Output = Option<String>> + Send, String> {
        let name = match workflow {
            Workflow::Hello => "Hello",
            Workflow::Chain => "Chain",
        };
        let handle = self.0.start::<_, String>(name, input, WorkflowOptions::with_id(id)).await;
        let handle = handle.map_err(text)?;
        Ok(async move { handle.result().await.ok() })
    }
}

async fn hello(ctx: DurableContext, number: usize) -> DurareResult<String> {
    ctx.step("Greet", || async move { Ok(program::greeting(number)) }).await
}

async fn chain(ctx: DurableContext, steps: usize) -> DurareResult<String> {
    let mut sum = 0;
    for step in 0..steps {
        sum += ctx
            .step("Step", || async move {
                program::step_runs();
                Ok(step)
            })
            .await?;
    }
    Ok(sum.to_string())
}

async fn open(args: &Args) -> Result<(Arc<dyn StateProvider>, &'static str), String> {
    match args.text("--store", "sqlite") {
        "sqlite" => {
            let (store, durability) = sqlite(args).await?;
            Ok((Arc::new(store), durability))
        }
        "postgres" => {
            let store = PostgresProvider::connect(&server::url()?).await.map_err(text)?;
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
