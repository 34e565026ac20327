//! Panics inside the store while other calls use it.

use crate::support::*;
use outlast_model::WorkItem;
use outlast_provider::{Provider, ProviderError, TagFilter};
use outlast_sqlite::{SqliteOptions, SqliteProvider, StatementFault, StatementFaults};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// Panics at every n-th statement while it is armed.
struct Bomb {
    every: u64,
    seen: AtomicU64,
    armed: AtomicBool,
}

impl Bomb {
    fn new(every: u64) -> Arc<Self> {
        Arc::new(Self { every, seen: AtomicU64::new(0), armed: AtomicBool::new(false) })
    }

    fn arm(&self, armed: bool) {
        self.armed.store(armed, SeqCst);
    }
}

impl StatementFaults for Bomb {
    fn fault_of(&self, _sql: &str) -> Option<StatementFault> {
        if self.armed.load(SeqCst) && self.seen.fetch_add(1, SeqCst) % self.every == self.every - 1 {
            panic!("injected by a test");
        }
        None
    }
}

fn with(bomb: &Arc<Bomb>, inline: bool) -> SqliteOptions {
    SqliteOptions { faults: Some(Arc::clone(bomb) as _), inline, ..SqliteOptions::default() }
}

/// The starts of one test by their answers.
#[derive(Default)]
struct Ledger {
    stored: BTreeSet<String>,
    refused: BTreeSet<String>,
    in_doubt: BTreeSet<String>,
}

fn is_panic(error: &ProviderError) -> bool {
    !error.is_retryable() && error.message.contains("panicked during")
}

/// Stores many starts and runs fetches while statements panic. Every acknowledged start must be stored, and no refused start.
async fn acknowledged_starts_survive(store: Arc<SqliteProvider>, bomb: Arc<Bomb>) {
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let mut tasks = Vec::new();
    bomb.arm(true);
    for task in 0..8 {
        let (store, ledger) = (Arc::clone(&store), Arc::clone(&ledger));
        tasks.push(tokio::spawn(async move {
            for n in 0..40 {
                let id = format!("i-{task}-{n}");
                let answer = store.enqueue_for_orchestrator(start(&id), None).await;
                let mut ledger = ledger.lock().unwrap();
                match answer {
                    Ok(()) => ledger.stored.insert(id),
                    Err(error) if is_panic(&error) => {
                        let expected =
                            format!("panicked during enqueue_for_orchestrator for instance '{id}'");
                        assert!(error.message.contains(&expected), "{}", error.message);
                        ledger.refused.insert(id)
                    }
                    Err(error) if error.is_retryable() => ledger.in_doubt.insert(id),
                    Err(error) => panic!("{error:?}"),
                };
            }
        }));
    }
    // Fetches, give-backs and reads run meanwhile; each of them succeeds or returns one of the two errors.
    let worker = Arc::clone(&store);
    tasks.push(tokio::spawn(async move {
        for _ in 0..60 {
            match worker.fetch_orchestration_item(LONG, NO_WAIT, None).await {
                Ok(Some((_, token, _))) => {
                    if let Err(error) = worker.abandon_orchestration_item(&token, None, true).await {
                        assert!(is_panic(&error) || error.is_retryable(), "{error:?}");
                    }
                }
                Ok(None) => tokio::task::yield_now().await,
                Err(error) => assert!(is_panic(&error) || error.is_retryable(), "{error:?}"),
            }
            let read = worker.read("i-0-0").await;
            assert!(
                read.as_ref().map_or_else(|error| is_panic(error) || error.is_retryable(), |_| true),
                "{read:?}"
            );
        }
    }));
    for task in tasks {
        task.await.unwrap();
    }
    bomb.arm(false);
    let ledger = Arc::into_inner(ledger).unwrap().into_inner().unwrap();
    assert!(store.stats().panics > 0 && !ledger.refused.is_empty(), "no call panicked");
    assert!(ledger.stored.len() > 200, "only {} starts were stored", ledger.stored.len());
    let mut found = BTreeSet::new();
    // Leases whose fetches panicked are still held, so the dump counts the rows.
    for line in store.debug_dump().await.lines() {
        if line.starts_with("orchestrator_queue: ") {
            let rows: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
            let (least, most) = (ledger.stored.len(), ledger.stored.len() + ledger.in_doubt.len());
            assert!((least..=most).contains(&rows), "{rows} rows, {least} acknowledged, {most} at most");
        }
    }
    while let Some((item, token, _)) = store.fetch_orchestration_item(LONG, NO_WAIT, None).await.unwrap() {
        found.insert(item.instance.clone());
        drop(token);
    }
    assert!(found.is_disjoint(&ledger.refused), "a refused start is stored");
    let work = store.fetch_work_item(LONG, NO_WAIT, None, &TagFilter::default()).await;
    assert!(work.unwrap().is_none());
}

fn start(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_string(),
        orchestration: "O".to_string(),
        input: String::new(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn panics_under_load_lose_no_acknowledged_start_on_a_file() {
    let (_folder, path) = fresh();
    let bomb = Bomb::new(41);
    acknowledged_starts_survive(Arc::new(open_with(&path, with(&bomb, false)).await), bomb).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn panics_under_load_lose_no_acknowledged_start_in_memory() {
    let bomb = Bomb::new(41);
    let options = Some(with(&bomb, false));
    let store = SqliteProvider::new_in_memory_with_options(options).await.unwrap();
    acknowledged_starts_survive(Arc::new(store), bomb).await;
}

#[tokio::test]
async fn panics_under_load_lose_no_acknowledged_start_inline() {
    let (_folder, path) = fresh();
    let bomb = Bomb::new(41);
    acknowledged_starts_survive(Arc::new(open_with(&path, with(&bomb, true)).await), bomb).await;
}

#[tokio::test]
async fn a_panicking_read_replaces_one_connection_and_later_calls_succeed() {
    for inline in [false, true] {
        let (_folder, path) = fresh();
        let bomb = Bomb::new(1);
        let options = SqliteOptions { reader_connections: 1, ..with(&bomb, inline) };
        let store = open_with(&path, options).await;
        store.enqueue_for_orchestrator(start("i"), None).await.unwrap();
        bomb.arm(true);
        let error = store.read("i").await.unwrap_err();
        bomb.arm(false);
        assert!(is_panic(&error) && error.operation == "read", "{error:?}");
        store.read("i").await.unwrap();
        assert!(store.fetch_orchestration_item(LONG, NO_WAIT, None).await.unwrap().is_some());
        assert_eq!((store.stats().panics, store.stats().reopened), (1, 1), "inline: {inline}");
    }
}

/// A panic outside a transaction does not end the writer either.
#[tokio::test]
async fn a_panic_while_the_connection_reopens_fails_one_call_and_later_calls_succeed() {
    let (_folder, path) = fresh();
    let bomb = Bomb::new(1);
    let store = open_with(&path, with(&bomb, false)).await;
    bomb.arm(true);
    // The first panic closes the connection, so the second panic happens while the writer opens the next one.
    for n in 1..=2 {
        let error = store.enqueue_for_orchestrator(start("i"), None).await.unwrap_err();
        assert!(error.is_retryable(), "{error:?}");
        // The caller gets its answer while the panic unwinds, before the store counts the panic.
        let counted = async {
            while store.stats().panics < n {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, counted).await.expect("the panic is counted");
        assert_eq!((store.stats().panics, store.stats().reopened), (n, 0));
    }
    bomb.arm(false);
    store.enqueue_for_orchestrator(start("i"), None).await.unwrap();
    assert!(store.fetch_orchestration_item(LONG, NO_WAIT, None).await.unwrap().is_some());
    assert_eq!((store.stats().panics, store.stats().reopened), (2, 1));
}

/// The writer receives the stop command while it handles a panic, and ends.
#[tokio::test]
async fn a_store_closes_while_its_writer_panics() {
    let (_folder, path) = fresh();
    let bomb = Bomb::new(1);
    let store = open_with(&path, with(&bomb, false)).await;
    bomb.arm(true);
    store.enqueue_for_orchestrator(start("i"), None).await.unwrap_err();
    let (sender, closed) = std::sync::mpsc::channel();
    // A runtime waits for its tasks, so a hanging task could not fail the test.
    #[allow(clippy::disallowed_methods, reason = "the thread may hang, and a task may not")]
    std::thread::spawn(move || {
        drop(store);
        sender.send(())
    });
    closed.recv_timeout(PATIENCE).expect("the store closes");
}
