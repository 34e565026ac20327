//! Processes that are killed repeatedly with `kill -9`: all instances complete.

use crate::support::{LONGEST_WAIT, activities, orchestrations};
use outlast::providers::sqlite::SqliteProvider;
use outlast::runtime::Runtime;
use outlast::{ActivityContext, Client, OrchestrationContext, OrchestrationStatus, RuntimeOptions};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const INSTANCES: usize = 6;
const STEPS: u64 = 25;
const TEST: &str = "processes::killed_processes_lose_no_step";

/// Adds up its steps. The sum is wrong if a step is lost or counted twice.
async fn walk(ctx: OrchestrationContext, steps: u64) -> Result<u64, String> {
    let mut sum = 0;
    for step in 1..=steps {
        sum += ctx.schedule_activity_typed::<u64, u64>("Step", &step).await?;
        ctx.set_kv_value("sum", sum.to_string());
        if step % 10 == 0 {
            ctx.schedule_timer(Duration::from_millis(5)).await;
        }
    }
    Ok(sum)
}

async fn open(folder: &Path) -> Arc<SqliteProvider> {
    let url = format!("sqlite:{}", folder.join("store.db").display());
    Arc::new(SqliteProvider::new(&url, None).await.unwrap())
}

/// Runs until it has made `at_most` steps or all instances have ended. Then it waits to be killed.
async fn work(folder: PathBuf, at_most: u64) {
    let store = open(&folder).await;
    let ledger = folder.join("ledger");
    let made = Arc::new(AtomicU64::new(0));
    let steps = activities().register_typed("Step", move |ctx: ActivityContext, step: u64| {
        let (ledger, made) = (ledger.clone(), Arc::clone(&made));
        async move {
            if made.fetch_add(1, Ordering::SeqCst) >= at_most {
                std::future::pending::<()>().await;
            }
            // One write per line, so that a kill cannot truncate it.
            let mut file =
                std::fs::OpenOptions::new().create(true).append(true).open(ledger).map_err(text)?;
            file.write_all(format!("{}\n", ctx.idempotency_key()).as_bytes()).map_err(text)?;
            println!("STEP");
            Ok(step)
        }
    });
    let options = RuntimeOptions {
        orchestrator_lock_timeout: Duration::from_millis(300),
        worker_lock_timeout: Duration::from_millis(300),
        worker_lock_renewal_buffer: Duration::from_millis(100),
        max_attempts: 1_000,
        ..RuntimeOptions::default()
    };
    let all = orchestrations().register_typed("Walk", walk).build();
    let _runtime = Runtime::start_with_options(store.clone(), steps.build(), all, options).await;
    let client = Client::new(store);
    for n in 0..INSTANCES {
        client.start_orchestration_typed(format!("walk-{n}"), "Walk", STEPS).await.unwrap();
    }
    for n in 0..INSTANCES {
        client.wait_for_orchestration(&format!("walk-{n}"), LONGEST_WAIT).await.unwrap();
    }
    println!("DONE");
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}

#[test]
fn killed_processes_lose_no_step() {
    let tokio =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if let Ok(folder) = std::env::var("OUTLAST_TEST_FOLDER") {
        let at_most = std::env::var("OUTLAST_TEST_STEPS").unwrap().parse().unwrap();
        return tokio().block_on(work(folder.into(), at_most));
    }
    let folder = tempfile::tempdir().unwrap();
    let (mut kills, mut steps_before_death) = (0, 3_u64);
    loop {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([TEST, "--exact", "--nocapture", "--test-threads", "1"])
            .env("OUTLAST_TEST_FOLDER", folder.path())
            // The kill comes a short time later, so that it interrupts steps in progress.
            .env("OUTLAST_TEST_STEPS", (steps_before_death + 2).to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut done = false;
        let mut steps = 0;
        for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
            steps += u64::from(line.contains("STEP"));
            done |= line.contains("DONE");
            if done || steps == steps_before_death {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if done {
            break;
        }
        kills += 1;
        steps_before_death = 3 + kills * 7 % 23;
        assert!(kills < 200, "no progress");
    }
    assert!(kills >= 5, "only {kills} kills");
    tokio().block_on(check_results(folder.path()));
}

/// Checks that every walk has its sum, that every step was made, and that each step is in the history once.
async fn check_results(folder: &Path) {
    let store = open(folder).await;
    assert_eq!(store.integrity_check().await.unwrap(), [""; 0]);
    let client = Client::new(store);
    let mut runs = BTreeMap::new();
    for key in std::fs::read_to_string(folder.join("ledger")).unwrap().lines() {
        *runs.entry(key.to_string()).or_insert(0) += 1;
    }
    assert_eq!(runs.len() as u64, INSTANCES as u64 * STEPS, "every step, each under one key");
    for n in 0..INSTANCES {
        let instance = format!("walk-{n}");
        match client.get_orchestration_status(&instance).await.unwrap() {
            OrchestrationStatus::Completed { output, .. } => {
                assert_eq!(output, (STEPS * (STEPS + 1) / 2).to_string())
            }
            other => panic!("{instance}: {other:?}"),
        }
        let history = client.read_execution_history(&instance, 1).await.unwrap();
        let ids: Vec<u64> = history.iter().map(|event| event.event_id).collect();
        assert_eq!(ids, (1..=history.len() as u64).collect::<Vec<_>>());
        let completed =
            history.iter().filter(|event| matches!(event.kind, outlast::EventKind::ActivityCompleted { .. }));
        assert_eq!(completed.count() as u64, STEPS);
    }
    println!("{} steps ran more than once", runs.values().filter(|count| **count > 1).count());
}
