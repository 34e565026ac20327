//! Panics inside of the store: the call that causes a panic gets an error, and other calls continue.
#![cfg(feature = "test-hooks")]

use crate::factory::{fresh_config, raw};
use crate::line::{Flows, Line, Whose};
use crate::listening::quiet;
use crate::support::*;
use outlast_postgres::{ConnectionConfig, Faults, PostgresProvider, ProviderConfig, Step};
use outlast_provider::{Provider, ProviderAdmin, ProviderError, TagFilter};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;

/// The step that panics, its instance, and the number of panics that are left.
#[derive(Clone, Default)]
struct Bomb {
    armed: Arc<Mutex<Option<(Step, &'static str)>>>,
    left: Arc<AtomicI32>,
}

impl Bomb {
    /// Panics at this step of requests about this instance; of all requests if `instance` is empty.
    fn arm(&self, step: Step, instance: &'static str, times: i32) {
        self.left.store(times, Ordering::SeqCst);
        *self.armed.lock().unwrap() = Some((step, instance));
    }

    fn into(self, config: ProviderConfig) -> ProviderConfig {
        let mut config = config;
        config.faults = Some(Faults::new(move |step, instances| {
            let Some((armed, instance)) = *self.armed.lock().unwrap() else { return };
            let concerns = instance.is_empty() || instances.iter().any(|id| id == instance);
            if armed == step && concerns && self.left.fetch_sub(1, Ordering::SeqCst) > 0 {
                panic!("a test blew up {step:?}");
            }
        }));
        config
    }
}

/// A store whose tasks have ended answers no call; the timeout then fails the test.
async fn in_time(test: impl Future<Output = ()>) {
    tokio::time::timeout(2 * PATIENCE, test).await.expect("the store answers");
}

/// Whether the panic of another call may cause this error: the outcome of the call is in doubt, or the panic lost its answer.
fn is_bystander(error: &ProviderError) -> bool {
    error.is_retryable() || error.message.contains("panicked")
}

/// Runs instances until `stop` is set; returns their number.
fn load(store: &Arc<PostgresProvider>, kind: usize, stop: &Arc<AtomicI32>) -> JoinHandle<usize> {
    let (store, stop) = (Arc::clone(store), Arc::clone(stop));
    tokio::spawn(async move {
        let mut done = 0;
        while stop.load(Ordering::SeqCst) == 0 {
            let id = format!("load-{kind}-{done}");
            if let Err(error) = store.enqueue_for_orchestrator(start(&id), None).await {
                assert!(is_bystander(&error), "{error}");
            }
            match store.fetch_orchestration_item(LONG, Duration::from_millis(100), None).await {
                Ok(Some((item, token, _))) => {
                    if let Err(error) = ack(&*store, &token, &item.instance).await {
                        assert!(is_bystander(&error) || error.message.contains("exists"), "{error}");
                    }
                }
                Ok(None) => {}
                Err(error) => assert!(is_bystander(&error), "{error}"),
            }
            done += 1;
        }
        done
    })
}

async fn under_load(step: Step, lanes: usize) {
    let bomb = Bomb::default();
    let config = bomb.clone().into(fresh_config().lanes(lanes));
    let store = Arc::new(PostgresProvider::new_with_config(config).await.unwrap());
    store.enqueue_for_orchestrator(start("victim"), Some(LONG)).await.unwrap();
    let stop = Arc::new(AtomicI32::new(0));
    let others: Vec<_> = (0..4).map(|kind| load(&store, kind, &stop)).collect();
    for _ in 0..3 {
        bomb.arm(step, "victim", i32::MAX);
        let error = store.enqueue_for_orchestrator(completed("victim", 2), None).await.unwrap_err();
        // If nothing is stored, the store runs each call of the shared transaction alone; otherwise the error says that the
        // outcome is unknown.
        let is_named = error.message.contains("victim");
        let says_why = error.message.contains("panicked") || error.message.contains("unknown whether");
        assert!(is_named && says_why, "{step:?}: {error}");
        assert!(step > Step::Send || !error.is_retryable(), "{step:?}: {error}");
        bomb.arm(step, "victim", 0);
    }
    let done = store.stats().calls;
    while store.stats().calls < done + 50 {
        tokio::task::yield_now().await;
    }
    stop.store(1, Ordering::SeqCst);
    for other in others {
        assert!(other.await.unwrap() > 0);
    }
    assert!(store.stats().panics >= 3, "{}", store.stats().panics);
    store.enqueue_for_orchestrator(completed("victim", 2), None).await.unwrap();
    run_one(&store, "after").await;
}

/// Runs one instance, and the turns that the load has left before it.
async fn run_one(store: &PostgresProvider, instance: &str) {
    enqueue(store, instance).await;
    loop {
        let (item, token, _) = turn(store).await;
        let acked = ack(store, &token, &item.instance).await;
        if item.instance == instance {
            return acked.unwrap();
        }
    }
}

#[tokio::test]
async fn panicking_call_gets_an_error_at_any_step_under_load() {
    for step in [Step::Encode, Step::Send, Step::Receive, Step::Answer] {
        in_time(under_load(step, 1)).await;
        in_time(under_load(step, 2)).await;
    }
}

/// Without other calls, the call itself is the cause at every step.
#[tokio::test]
async fn lone_panicking_call_gets_a_permanent_error_with_its_instance() {
    in_time(panic_alone()).await;
}

async fn panic_alone() {
    let bomb = Bomb::default();
    let config = bomb.clone().into(fresh_config());
    let schema = config.schema_name.clone().unwrap();
    let store = PostgresProvider::new_with_config(config).await.unwrap();
    for (step, stored) in [(Step::Encode, 0), (Step::Send, 0), (Step::Receive, 1), (Step::Answer, 2)] {
        bomb.arm(step, "victim", i32::MAX);
        let error = store.enqueue_for_orchestrator(completed("victim", 2), None).await.unwrap_err();
        assert!(!error.is_retryable(), "{step:?}: {error}");
        assert!(
            error.message.contains("the store panicked while it worked on the call for instance 'victim'"),
            "{error}"
        );
        assert_eq!(error.operation, "enqueue_for_orchestrator");
        until(&raw().await, &format!("SELECT count(*) = {stored} FROM {schema}.orchestrator_queue")).await;
    }
}

/// The store runs the other requests of a transaction in which one request panics, once each.
#[tokio::test]
async fn commits_that_share_a_transaction_with_a_panic_are_stored_once() {
    in_time(commit_beside_a_panic()).await;
}

async fn commit_beside_a_panic() {
    for step in [Step::Encode, Step::Send, Step::Receive] {
        let bomb = Bomb::default();
        let store =
            PostgresProvider::new_with_config(bomb.clone().into(fresh_config().lanes(1))).await.unwrap();
        let mut turns = Vec::new();
        for n in 0..4 {
            enqueue(&store, &format!("i{n}")).await;
            turns.push(turn(&store).await);
        }
        let before = store.stats().transactions;
        bomb.arm(step, "i2", i32::MAX);
        let commits = turns.iter().map(|(item, token, _)| ack(&store, token, &item.instance));
        let answers = futures::future::join_all(commits).await;
        assert!(store.stats().panics >= 2, "the request panics in the batch and alone");
        for ((item, ..), answer) in turns.iter().zip(answers) {
            match item.instance.as_str() {
                "i2" => {
                    let error = answer.unwrap_err();
                    assert!(!error.is_retryable() && error.message.contains("'i2'"), "{step:?}: {error}");
                }
                _ => answer.unwrap(),
            }
        }
        assert!(store.stats().transactions > before);
        for (item, ..) in turns.iter().filter(|(item, ..)| item.instance != "i2") {
            assert_eq!(store.read(&item.instance).await.unwrap().len(), 1);
        }
    }
}

/// A fetch whose answer is lost in a panic gets an error, and the store gives its leases back.
#[tokio::test]
async fn leases_lost_in_a_panic_are_given_back() {
    in_time(lose_leases()).await;
}

async fn lose_leases() {
    for step in [Step::Receive, Step::Answer, Step::Serve] {
        let bomb = Bomb::default();
        let store = PostgresProvider::new_with_config(bomb.clone().into(fresh_config())).await.unwrap();
        enqueue(&store, "i").await;
        store.enqueue_for_worker(activity("i", 2)).await.unwrap();
        bomb.arm(step, "", 1);
        let error = store.fetch_orchestration_item(LONG, NO_WAIT, None).await.unwrap_err();
        assert!(error.message.contains("panicked"), "{step:?}: {error}");
        // The store gives the lease back in a transaction of its own; that transaction would reach the next armed step.
        assert_eq!(turn(&store).await.2, 1, "{step:?}: no delivery is counted");
        bomb.arm(step, "", 1);
        let error = store.fetch_work_item(LONG, NO_WAIT, None, &TagFilter::DefaultOnly).await.unwrap_err();
        assert!(error.message.contains("panicked"), "{step:?}: {error}");
        assert_eq!(work(&store).await.2, 1, "{step:?}: no delivery is counted");
    }
}

#[tokio::test]
async fn panics_of_listener_and_reader_are_contained() {
    in_time(panic_in_other_tasks()).await;
}

async fn panic_in_other_tasks() {
    let line = Line::open().await;
    let bomb = Bomb::default();
    let mut config = bomb.clone().into(fresh_config()).deadline(Duration::from_secs(1));
    config.connection = ConnectionConfig::Url(line.url.clone());
    let store = Arc::new(PostgresProvider::new_with_config(config).await.unwrap());
    run(&*store, "i").await;

    bomb.arm(Step::Take, "", 3);
    run(&*store, "j").await;

    bomb.arm(Step::Outcomes, "i", 1);
    let error = store.read_outcome("i").await.unwrap_err();
    assert!(!error.is_retryable() && error.message.contains("'i'"), "{error}");
    assert!(store.read_outcome("i").await.unwrap().is_some());

    let before = store.stats().panics;
    bomb.arm(Step::Listen, "", 1);
    let watch = store.watch_instance("k", outlast_provider::Interest::Ended);
    while store.stats().panics == before {
        tokio::task::yield_now().await;
    }
    drop(watch);
    run(&*store, "k").await;

    enqueue(&*store, "l").await;
    quiet(|| store.stats().polls).await;
    bomb.arm(Step::GiveBack, "", 1);
    line.set(Whose::All, Flows::SWALLOW_DOWN);
    let fetched = loop {
        match store.fetch_orchestration_item(LONG, PATIENCE, None).await {
            Ok(fetched) => break fetched,
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    };
    assert_eq!(fetched.expect("the store gives the lease back").0.instance, "l");
    assert_eq!(store.list_instances().await.unwrap().len(), 3);
}
