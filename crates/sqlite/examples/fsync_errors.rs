//! A store on a disk whose syncs fail: calls fail, no acknowledged call is lost, and the store recovers by itself.
//!
//! Without faults every call succeeds. `cargo xtask test --only fsync-errors` runs it under `strace`, which makes some syncs
//! fail.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use clap::Parser;
use outlast_model::WorkItem;
use outlast_provider::{Provider, StartOutcome, StartPolicy, StartRequest};
use outlast_sqlite::{SqliteError, SqliteOptions, SqliteProvider};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const CALLS: usize = 80;

#[derive(Parser)]
struct Args {
    /// The folder of the store; default: a new one
    folder: Option<PathBuf>,
    /// Succeeds only if some syncs failed
    #[arg(long)]
    expect_failures: bool,
    /// Moves the log into the database often
    #[arg(long)]
    small_log: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args = Args::parse();
    let own_folder = tempfile::tempdir()?;
    let folder = args.folder.as_deref().unwrap_or(own_folder.path());
    let path = folder.join("store.db");
    let wal_limit_bytes = if args.small_log { 400 << 10 } else { 32 << 20 };

    let provider = open(&path, wal_limit_bytes).await?;
    let (mut acknowledged, mut failed) = (Vec::new(), 0);
    for n in 0..CALLS {
        let instance = format!("{}-{n}", std::process::id());
        match provider.enqueue_for_orchestrator(start(&instance), None).await {
            Ok(()) => {
                println!("{instance}: stored");
                acknowledged.push(instance);
            }
            Err(error) if error.is_retryable() => {
                println!("{instance}: {error}");
                failed += 1;
            }
            Err(error) => return Err(format!("{instance}: trying again should help: {error}").into()),
        }
    }
    let reopened = provider.stats().reopened;
    // In the log of `strace`, this is where the calls end.
    let _ = std::fs::File::create(folder.join("calls-end"))?.sync_all();
    drop(provider);

    let provider = open(&path, wal_limit_bytes).await?;
    let mut missing = 0;
    for instance in &acknowledged {
        if is_missing(&provider, instance).await? {
            println!("{instance}: acknowledged, and gone");
            missing += 1;
        }
    }
    println!("acknowledged={} failed={failed} reopened={reopened} missing={missing}", acknowledged.len());
    let as_expected = match args.expect_failures {
        // The store recovered by itself: most calls happen between two failures.
        true => failed > 0 && reopened > 0 && acknowledged.len() > failed,
        false => failed == 0 && reopened == 0,
    };
    Ok(if missing == 0 && as_expected { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Opens the store, and tries again while the disk fails.
async fn open(path: &Path, wal_limit_bytes: u64) -> Result<SqliteProvider, SqliteError> {
    let url = format!("sqlite:{}", path.display());
    let options = SqliteOptions { wal_limit_bytes, ..SqliteOptions::default() };
    for _ in 0..20 {
        match SqliteProvider::new(&url, Some(options.clone())).await {
            Err(error) if error.is_retryable() => println!("opening: {error}"),
            opened => return opened,
        }
    }
    SqliteProvider::new(&url, Some(options)).await
}

/// A second start of the instance is refused if the first one was stored.
async fn is_missing(provider: &SqliteProvider, instance: &str) -> Result<bool, Box<dyn Error>> {
    let request = || StartRequest {
        start: start(instance),
        delay: None,
        policy: StartPolicy::FailIfExists,
        messages: Vec::new(),
    };
    loop {
        match provider.start_orchestration(request()).await {
            Ok(outcome) => return Ok(outcome == StartOutcome::Started),
            Err(error) if error.is_retryable() => println!("{instance}: {error}"),
            Err(error) => return Err(error.into()),
        }
    }
}

fn start(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_string(),
        orchestration: "Hello".to_string(),
        input: "x".repeat(20_000),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}
