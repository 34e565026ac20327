//! The scenarios of `cargo xtask bench compare` that dbos has too, on PostgreSQL.
#![forbid(unsafe_code)]

#[path = "../../in_process/mod.rs"]
mod in_process;

use dbos::{Config, DBOS, StartOptions, WorkflowRef};
use in_process::measure::{Args, Outcome, answer, on_two_threads, server};
use in_process::{Library, Workflow, program, text};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// `--connections` and `--coalesce-ms` are dbos's own tuning options: `max_connections` and `notification_coalesce`.
const OPTIONS: &[&str] = &["--count", "--steps", "--store", "--dir", "--connections", "--coalesce-ms"];

fn main() -> ExitCode {
    let args = Args::parse(std::env::args().skip(1), OPTIONS);
    answer(args.and_then(|args| on_two_threads(run(&args))))
}

async fn run(args: &Args) -> Result<Outcome, String> {
    match args.text("--store", "postgres") {
        "postgres" => {}
        other => return Err(format!("unknown store '{other}'")),
    }
    let mut config = Config::new("bench", server::url()?);
    config.app_version = Some("1.0.0".to_string());
    config.max_connections = args.number("--connections", config.max_connections)?;
    match args.number("--coalesce-ms", 0)? {
        0 => {}
        coalesce => config.notification_coalesce = Some(Duration::from_millis(coalesce)),
    }
    let dbos = DBOS::new(config);
    let hello = dbos.register_workflow("Hello", hello).map_err(text)?;
    let chain = dbos.register_workflow("Chain", chain).map_err(text)?;
    dbos.launch().await.map_err(text)?;
    let outcome = in_process::run(&Arc::new(Dbos { hello, chain }), "FULL", args).await;
    dbos.shutdown().await;
    outcome
}

struct Dbos {
    hello: WorkflowRef<usize, String>,
    chain: WorkflowRef<usize, String>,
}

impl Library for Dbos {
    async fn start(
        &self,
        id: String,
        workflow: Workflow,
        input: usize,
    ) -> Result<impl Future<Output = Option<String>> + Send, String> {
        let workflow = match workflow {
            Workflow::Hello => &self.hello,
            Workflow::Chain => &self.chain,
        };
        let options = StartOptions { workflow_id: Some(&id), ..Default::default() };
        let handle = workflow.start_with(input, options).await.map_err(text)?;
        Ok(async move { handle.result().await.ok() })
    }
}

async fn hello(number: usize) -> dbos::Result<String> {
    dbos::step("Greet", || async move { Ok(program::greeting(number)) }).await
}

async fn chain(steps: usize) -> dbos::Result<String> {
    let mut sum = 0;
    for step in 0..steps {
        sum += dbos::step("Step", || async move {
            program::step_runs();
            dbos::Result::Ok(step)
        })
        .await?;
    }
    Ok(sum.to_string())
}
