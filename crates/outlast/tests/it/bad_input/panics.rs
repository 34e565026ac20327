//! Handlers that panic, in every place where user code runs, and handlers that block a thread.

use crate::support::{ALL, Cluster, Kind, LONGEST_WAIT, Node, activities, calls, orchestrations};
use outlast::{ActivityContext, AppErrorKind, ErrorDetails, OrchestrationContext, OrchestrationStatus};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn works() -> outlast::runtime::registry::ActivityRegistryBuilder {
    activities().register("Work", |_: ActivityContext, _: String| async move { Ok("worked".to_string()) })
}

#[tokio::test]
async fn an_orchestration_that_panics_fails_with_its_message() {
    for kind in ALL {
        let cluster = Cluster::real(kind).await;
        let at_once = |_: OrchestrationContext,
                       input: String|
         -> std::future::Ready<Result<String, String>> { panic!("at once: {input}") };
        let later = |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("Work", "").await?;
            panic!("later: {input}");
        };
        let without_text = |_: OrchestrationContext, _: String| async move { std::panic::panic_any(7_u8) };
        let parent = |ctx: OrchestrationContext, _: String| async move {
            Ok(ctx.schedule_sub_orchestration("Later", "child").await.unwrap_err())
        };
        let all = orchestrations()
            .register("AtOnce", at_once)
            .register("Later", later)
            .register("WithoutText", without_text)
            .register("Parent", parent);
        cluster.start(&Node::new(all, works())).await;
        for (name, expected) in [
            ("AtOnce", "orchestration panicked: at once: x"),
            ("Later", "orchestration panicked: later: x"),
            ("WithoutText", "orchestration panicked: orchestration panicked"),
        ] {
            cluster.begin(name, name, "x").await;
            assert_eq!(cluster.failure(name).await, expected, "{kind:?}");
            let status = cluster.ended(name).await;
            let OrchestrationStatus::Failed { details: ErrorDetails::Application { kind, .. }, .. } = status
            else {
                panic!("{status:?}")
            };
            assert_eq!(kind, AppErrorKind::Panicked);
        }
        assert_eq!(cluster.run("parent", "Parent", "").await, "orchestration panicked: later: child");
        cluster.end().await;
    }
}

/// A destructor that panics.
struct Bomb(&'static str);

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("{}", self.0);
        }
    }
}

/// A panic while code is dropped affects only its instance: at its return, when it is cancelled, when it is evicted from the warm
/// cache, and at the shutdown of the runtime.
#[tokio::test]
async fn a_panicking_destructor_affects_only_its_instance() {
    for kind in ALL {
        let cluster = Cluster::real(kind).await;
        let returns = |ctx: OrchestrationContext, _: String| async move {
            let _bomb = Bomb("dropped at the return");
            ctx.schedule_activity("Work", "").await
        };
        let waits = |ctx: OrchestrationContext, _: String| async move {
            let _bomb = Bomb("dropped while it waits");
            ctx.set_custom_status("waiting");
            Ok(ctx.schedule_wait("never").await)
        };
        let all = calls("Work").register("Returns", returns).register("Waits", waits);
        let node = Node::new(all, works()).with(|options| {
            options.orchestration_concurrency = 1;
            options.worker_concurrency = 1;
            options.warm_executions = 2;
        });
        let number = cluster.start(&node).await;
        cluster.begin("returns", "Returns", "").await;
        let ended = cluster.ended("returns").await;
        assert!(matches!(ended, OrchestrationStatus::Failed { .. }), "{kind:?}: {ended:?}");

        cluster.begin("cancelled", "Waits", "").await;
        cluster.says("cancelled", "waiting").await;
        cluster.client.cancel_instance("cancelled", "enough").await.unwrap();
        cluster.failure("cancelled").await;

        for n in 0..5 {
            cluster.begin(&format!("evicted-{n}"), "Waits", "").await;
            cluster.says(&format!("evicted-{n}"), "waiting").await;
        }
        for n in 0..5 {
            assert_eq!(cluster.run(&format!("fine-{n}"), "Calls", "").await, "worked", "{kind:?}");
        }
        cluster.runtime(number).await.shutdown(None).await;
    }
}

#[tokio::test]
async fn a_panicking_destructor_fails_only_its_activity() {
    for kind in ALL {
        let cluster = Cluster::real(kind).await;
        let work = works().register("Bomb", |_: ActivityContext, _: String| async move {
            let _bomb = Bomb("dropped at the return");
            Ok("never seen".to_string())
        });
        let program = |ctx: OrchestrationContext, _: String| async move {
            let error = ctx.schedule_activity("Bomb", "").await.unwrap_err();
            Ok(format!("{} {}", error.contains("panic"), ctx.schedule_activity("Work", "").await?))
        };
        let node = Node::new(orchestrations().register("Program", program), work);
        cluster.start(&node.with(|options| options.worker_concurrency = 1)).await;
        assert_eq!(cluster.run("i", "Program", "").await, "true worked", "{kind:?}");
        cluster.end().await;
    }
}

/// Blocks its thread until the sender is dropped or sends.
fn hold(gate: &Arc<Mutex<std::sync::mpsc::Receiver<()>>>) {
    let _ = gate.lock().unwrap().recv_timeout(LONGEST_WAIT);
}

const LEASE: Duration = Duration::from_secs(4);

fn with_short_leases(options: &mut outlast::RuntimeOptions) {
    options.orchestrator_lock_timeout = LEASE;
    options.worker_lock_timeout = LEASE;
    options.worker_lock_renewal_buffer = LEASE / 3;
}

/// The activity blocks a thread for longer than its lease: the lease is renewed on another thread, and the activity runs once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_activity_that_blocks_a_thread_keeps_its_lease() {
    let cluster = Cluster::real(Kind::Memory).await;
    let (open, gate) = std::sync::mpsc::channel();
    let gate = Arc::new(Mutex::new(gate));
    let work = works().register("Holds", move |ctx: ActivityContext, _: String| {
        let gate = Arc::clone(&gate);
        async move {
            hold(&gate);
            Ok(format!("attempt {}", ctx.attempt()))
        }
    });
    cluster.start(&Node::new(calls("Holds"), work).with(with_short_leases)).await;
    cluster.begin("i", "Calls", "").await;
    crate::support::pass(3 * LEASE).await;
    drop(open);
    assert_eq!(cluster.output("i").await, "attempt 1");
    cluster.end().await;
}

/// A turn that blocks a thread keeps its lease, and no other lease is lost: the renewal task must not wait on the same thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_turn_that_blocks_a_thread_loses_no_lease() {
    let cluster = Cluster::real(Kind::Memory).await;
    let (open, gate) = std::sync::mpsc::channel();
    let gate = Arc::new(Mutex::new(gate));
    let work = works().register("Long", |ctx: ActivityContext, _: String| async move {
        // Not at a multiple of the interval of renewals, 2/3 of a lease: the renewal of an activity that ends at the same moment is
        // refused, and counts as a lost lease.
        crate::support::pass(2 * LEASE + LEASE / 6).await;
        Ok(format!("attempt {}", ctx.attempt()))
    });
    let holds = move |ctx: OrchestrationContext, _: String| {
        let gate = Arc::clone(&gate);
        async move {
            hold(&gate);
            ctx.schedule_activity("Work", "").await
        }
    };
    cluster.start(&Node::new(calls("Long").register("Holds", holds), work).with(with_short_leases)).await;
    cluster.begin("long", "Calls", "").await;
    cluster.begin("holds", "Holds", "").await;
    assert_eq!(cluster.output("long").await, "attempt 1");
    crate::support::pass(LEASE).await;
    drop(open);
    assert_eq!(cluster.output("holds").await, "worked");
    let refused =
        cluster.runtime(0).await.observability_handle().unwrap().metrics_provider().outlast_snapshot();
    assert_eq!(refused.leases_lost, 0, "{refused:?}");
    cluster.end().await;
}
