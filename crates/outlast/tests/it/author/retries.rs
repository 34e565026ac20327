//! Retries of the attribute, which act on the worker, on every store.

use crate::support::{ALL, Cluster, Kind, Node, pass};
use outlast::prelude::*;
use outlast::runtime::UnregisteredBackoffConfig;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

/// The runs of the bodies: failures before the run, attempt, idempotency key.
#[derive(Clone, Default)]
struct Runs {
    all: Arc<Mutex<Vec<(u32, u32, String)>>>,
    hangs: Arc<Notify>,
}

impl Runs {
    /// Notes a run; returns its number, counted from 1.
    fn note(&self, ctx: &ActivityContext) -> usize {
        let mut all = self.all.lock().unwrap();
        all.push((ctx.failures(), ctx.attempt(), ctx.idempotency_key().to_string()));
        all.len()
    }

    fn failures(&self) -> Vec<u32> {
        self.all.lock().unwrap().iter().map(|(failures, ..)| *failures).collect()
    }

    fn attempts(&self) -> Vec<u32> {
        self.all.lock().unwrap().iter().map(|(_, attempt, _)| *attempt).collect()
    }

    fn keys(&self) -> usize {
        let all = self.all.lock().unwrap();
        all.iter().map(|(.., key)| key).collect::<std::collections::BTreeSet<_>>().len()
    }

    async fn hang(&self) -> ! {
        self.hangs.notify_one();
        std::future::pending().await
    }
}

/// The tests of a store, which it must pass with the machine's time and, where that is possible, with paused time.
macro_rules! on_every_store {
    ($($name:ident: $play:ident),+ $(,)?) => { $(
        mod $name {
            use super::*;

            #[tokio::test(start_paused = true)]
            async fn under_paused_time() {
                for kind in ALL {
                    $play(&*Cluster::paused(kind).await).await;
                }
            }

            #[tokio::test]
            async fn on_cosmos_db() {
                $play(&*Cluster::real(Kind::Cosmos).await).await;
            }

            mod needs_postgres {
                use super::*;

                #[tokio::test]
                async fn on_postgres() {
                    $play(&*Cluster::real(Kind::Postgres).await).await;
                }
            }
        }
    )+ };
}

on_every_store! {
    twenty_attempts_succeed_with_ten_deliveries: attempts_are_no_deliveries,
    crashes_and_nodes_without_the_activity_use_no_attempt: crashes_use_no_attempt,
    silent_deliveries_poison_and_the_failure_names_the_last_error: silent_deliveries_poison,
}

/// A lease that ends soon after a crash.
const LEASE: Duration = Duration::from_secs(2);

#[outlast::activity(retry = 20, backoff = "1ms", max_backoff = "20ms")]
async fn succeeds_at_last(ctx: ActivityContext, State(runs): State<Runs>) -> Result<u32, String> {
    runs.note(&ctx);
    match ctx.failures() {
        19 => Ok(19),
        failures => Err(format!("busy {failures}")),
    }
}

#[outlast::orchestration]
async fn patient(ctx: OrchestrationContext) -> outlast::Result<u32> {
    Ok(succeeds_at_last::call(&ctx).await?)
}

async fn attempts_are_no_deliveries(cluster: &Cluster) {
    let runs = Runs::default();
    let module = outlast::module![succeeds_at_last, patient].state(runs.clone());
    cluster.start(&Node::of(module).with(|options| options.max_attempts = 10)).await;
    let ended = patient::start(&cluster.client).id("p").await.unwrap().result().await;
    assert_eq!(ended.unwrap(), 19);
    assert_eq!(runs.failures(), (0..20).collect::<Vec<_>>());
    assert_eq!(runs.attempts(), (1..=20).collect::<Vec<_>>());
    assert_eq!(runs.keys(), 1, "all attempts have one key");
    assert_eq!(cluster.history("p").await.len(), 4, "the history has no retries");
    cluster.end().await;
}

#[derive(Debug, PartialEq, thiserror::Error, Serialize, Deserialize, outlast::Failure)]
enum Trouble {
    #[error("busy {0}")]
    Busy(u32),
    #[error("declined")]
    #[failure(permanent)]
    Declined,
    #[error("later")]
    #[failure(retry_after = wait)]
    Later { wait: Duration },
}

#[outlast::activity(retry = 3, backoff = "1ms", timeout = "10s", errors = text)]
async fn in_text(ctx: ActivityContext, State(runs): State<Runs>) -> Result<(), Trouble> {
    runs.note(&ctx);
    Err(Trouble::Declined)
}

#[outlast::activity(retry = 3, backoff = "1ms", timeout = "10s")]
async fn fails(ctx: ActivityContext, State(runs): State<Runs>, how: String) -> Result<(), Trouble> {
    runs.note(&ctx);
    match how.as_str() {
        "busy" => Err(Trouble::Busy(ctx.failures() + 1)),
        "declined" => Err(Trouble::Declined),
        "later" => Err(Trouble::Later { wait: Duration::from_secs(3_600) }),
        "hangs" => std::future::pending().await,
        _ => panic!("on purpose {}", ctx.failures() + 1),
    }
}

#[outlast::orchestration]
async fn all_errors(ctx: OrchestrationContext) -> outlast::Result<u64> {
    assert_eq!(fails::call(&ctx, "busy".into()).await, Err(CallError::Failed(Trouble::Busy(3))));
    assert_eq!(fails::call(&ctx, "declined".into()).await, Err(CallError::Failed(Trouble::Declined)));
    assert_eq!(in_text::call(&ctx).await, Err(CallError::Other("declined".into())));
    let hung = fails::call(&ctx, "hangs".into()).await;
    assert!(matches!(&hung, Err(CallError::TimedOut(text)) if text.contains("10s")), "{hung:?}");
    let panicked = fails::call(&ctx, "panics".into()).await;
    assert_eq!(panicked, Err(CallError::Panicked("activity 'fails': on purpose 3".into())));
    let before = ctx.utc_now().await.unwrap();
    let later = fails::call(&ctx, "later".into()).await;
    assert!(matches!(later, Err(CallError::Failed(Trouble::Later { .. }))), "{later:?}");
    Ok(ctx.utc_now().await.unwrap().duration_since(before)?.as_secs())
}

#[tokio::test(start_paused = true)]
async fn the_last_error_reaches_the_caller_and_permanent_errors_are_not_retried() {
    let (cluster, runs) = (Cluster::paused(Kind::SqliteMemory).await, Runs::default());
    let module = outlast::module![fails, in_text, all_errors].state(runs.clone());
    cluster.start(&Node::of(module)).await;
    let waited = all_errors::start(&cluster.client).id("e").await.unwrap().result().await.unwrap();
    assert!((7_200..7_210).contains(&waited), "{waited}: the error says how long to wait");
    assert_eq!(runs.failures(), [0, 1, 2, 0, 0, 0, 1, 2, 0, 1, 2, 0, 1, 2]);
    cluster.end().await;
}

#[outlast::activity(retry = 3, backoff = "1ms")]
async fn crashes(ctx: ActivityContext, State(runs): State<Runs>) -> Result<u32, String> {
    match runs.note(&ctx) {
        1 | 4 => Err("busy".to_string()),
        2 | 3 | 5 => runs.hang().await,
        _ => Ok(ctx.failures()),
    }
}

#[outlast::orchestration]
async fn unlucky(ctx: OrchestrationContext) -> outlast::Result<u32> {
    Ok(crashes::call(&ctx).await?)
}

async fn crashes_use_no_attempt(cluster: &Cluster) {
    let runs = Runs::default();
    let whole = Node::of(outlast::module![crashes, unlucky].state(runs.clone()));
    let whole = whole.with(|options| options.worker_lock_timeout = LEASE);
    let number = cluster.start(&whole).await;
    let unlucky_one = unlucky::start(&cluster.client).id("u").await.unwrap();
    for _ in [2, 3] {
        runs.hangs.notified().await;
        cluster.restart_all().await;
    }
    runs.hangs.notified().await;
    // The next deliveries go to a node that lacks the activity.
    cluster.stop(number).await;
    let backoff = UnregisteredBackoffConfig { base_delay: LEASE / 100, max_delay: LEASE / 10 };
    let without = Node::of(outlast::module![unlucky]);
    let without = without.with(move |options| options.unregistered_backoff = backoff.clone());
    let without = cluster.start(&without).await;
    while deliveries(cluster, "u").await < 5 {
        pass(LEASE / 100).await;
    }
    cluster.stop(without).await;
    cluster.start(&whole).await;
    assert_eq!(unlucky_one.result().await.unwrap(), 2);
    assert_eq!(runs.failures(), [0, 1, 1, 1, 2, 2]);
    cluster.end().await;
}

/// The deliveries of the first activity of an instance that reported nothing.
async fn deliveries(cluster: &Cluster, instance: &str) -> u32 {
    let pending = cluster.client.pending_work(instance, 8).await.unwrap();
    pending.and_then(|pending| pending.activities.first().map(|item| item.attempt_count)).unwrap_or(0)
}

#[outlast::activity(retry = 1_000)]
async fn then_never_returns(ctx: ActivityContext, State(runs): State<Runs>) -> Result<(), String> {
    match runs.note(&ctx) {
        1 => Err("the only error".to_string()),
        _ => runs.hang().await,
    }
}

#[outlast::orchestration]
async fn poisoned(ctx: OrchestrationContext) -> outlast::Result<()> {
    Ok(then_never_returns::call(&ctx).await?)
}

async fn silent_deliveries_poison(cluster: &Cluster) {
    let runs = Runs::default();
    let module = outlast::module![then_never_returns, poisoned].state(runs.clone());
    let node = Node::of(module).with(|options| {
        options.max_attempts = 2;
        options.worker_lock_timeout = LEASE;
    });
    cluster.start(&node).await;
    let poisoned = poisoned::start(&cluster.client).id("x").await.unwrap();
    for _ in [1, 2] {
        runs.hangs.notified().await;
        cluster.restart_all().await;
    }
    let ended = poisoned.result().await;
    assert!(matches!(&ended, Err(CallError::Other(_))), "{ended:?}");
    let history = cluster.history("x").await.join("\n");
    assert!(history.contains("the only error"), "{history}");
    assert_eq!(runs.failures(), [0, 1, 1]);
    cluster.end().await;
}
