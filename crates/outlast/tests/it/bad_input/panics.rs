//! Handlers that panic, in every place where code of an author runs, and handlers that hold a thread.

use crate::support::{ALL, Kind, Node, PATIENCE, World, activities, calls, orchestrations};
use outlast::{ActivityContext, AppErrorKind, ErrorDetails, OrchestrationContext, OrchestrationStatus};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn works() -> outlast::runtime::registry::ActivityRegistryBuilder {
    activities().register("Work", |_: ActivityContext, _: String| async move { Ok("worked".to_string()) })
}

#[tokio::test]
async fn an_orchestration_that_panics_fails_with_its_message() {
    for kind in ALL {
        let world = World::real(kind).await;
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
        world.start(&Node::new(all, works())).await;
        for (name, expected) in [
            ("AtOnce", "orchestration panicked: at once: x"),
            ("Later", "orchestration panicked: later: x"),
            ("WithoutText", "orchestration panicked: orchestration panicked"),
        ] {
            world.begin(name, name, "x").await;
            assert_eq!(world.failure(name).await, expected, "{kind:?}");
            let status = world.ended(name).await;
            let OrchestrationStatus::Failed { details: ErrorDetails::Application { kind, .. }, .. } = status
            else {
                panic!("{status:?}")
            };
            assert_eq!(kind, AppErrorKind::Panicked);
        }
        assert_eq!(world.run("parent", "Parent", "").await, "orchestration panicked: later: child");
        world.end().await;
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

/// Whenever the code is dropped, it costs that instance at most: at its return, when it is cancelled, when it makes room
/// for others, and at the end of the runtime.
#[tokio::test]
async fn a_destructor_that_panics_costs_one_instance() {
    for kind in ALL {
        let world = World::real(kind).await;
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
        let number = world.start(&node).await;
        world.begin("returns", "Returns", "").await;
        let ended = world.ended("returns").await;
        assert!(matches!(ended, OrchestrationStatus::Failed { .. }), "{kind:?}: {ended:?}");

        world.begin("cancelled", "Waits", "").await;
        world.says("cancelled", "waiting").await;
        world.client.cancel_instance("cancelled", "enough").await.unwrap();
        world.failure("cancelled").await;

        for n in 0..5 {
            world.begin(&format!("evicted-{n}"), "Waits", "").await;
            world.says(&format!("evicted-{n}"), "waiting").await;
        }
        for n in 0..5 {
            assert_eq!(world.run(&format!("fine-{n}"), "Calls", "").await, "worked", "{kind:?}");
        }
        world.runtime(number).await.shutdown(None).await;
    }
}

#[tokio::test]
async fn a_destructor_that_panics_in_an_activity_costs_that_activity() {
    for kind in ALL {
        let world = World::real(kind).await;
        let work = works().register("Bomb", |_: ActivityContext, _: String| async move {
            let _bomb = Bomb("dropped at the return");
            Ok("never seen".to_string())
        });
        let program = |ctx: OrchestrationContext, _: String| async move {
            let error = ctx.schedule_activity("Bomb", "").await.unwrap_err();
            Ok(format!("{} {}", error.contains("panic"), ctx.schedule_activity("Work", "").await?))
        };
        let node = Node::new(orchestrations().register("Program", program), work);
        world.start(&node.with(|options| options.worker_concurrency = 1)).await;
        assert_eq!(world.run("i", "Program", "").await, "true worked", "{kind:?}");
        world.end().await;
    }
}

/// Holds its thread until the sender is dropped or sends.
fn hold(gate: &Arc<Mutex<std::sync::mpsc::Receiver<()>>>) {
    let _ = gate.lock().unwrap().recv_timeout(PATIENCE);
}

const LEASE: Duration = Duration::from_secs(2);

fn with_short_leases(options: &mut outlast::RuntimeOptions) {
    options.orchestrator_lock_timeout = LEASE;
    options.worker_lock_timeout = LEASE;
    options.worker_lock_renewal_buffer = LEASE / 3;
}

/// Longer than its lease: renewals go on elsewhere, and it runs once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_activity_that_holds_a_thread_keeps_its_lease() {
    let world = World::real(Kind::Memory).await;
    let (open, gate) = std::sync::mpsc::channel();
    let gate = Arc::new(Mutex::new(gate));
    let work = works().register("Holds", move |ctx: ActivityContext, _: String| {
        let gate = Arc::clone(&gate);
        async move {
            hold(&gate);
            Ok(format!("attempt {}", ctx.attempt()))
        }
    });
    world.start(&Node::new(calls("Holds"), work).with(with_short_leases)).await;
    world.begin("i", "Calls", "").await;
    crate::support::pass(3 * LEASE).await;
    drop(open);
    assert_eq!(world.output("i").await, "attempt 1");
    world.end().await;
}

/// A turn that holds a thread keeps its own lease, and costs nobody else theirs: whoever renews them must not wait behind
/// it on the same thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_turn_that_holds_a_thread_costs_nobody_a_lease() {
    let world = World::real(Kind::Memory).await;
    let (open, gate) = std::sync::mpsc::channel();
    let gate = Arc::new(Mutex::new(gate));
    let work = works().register("Long", |ctx: ActivityContext, _: String| async move {
        crate::support::pass(2 * LEASE).await;
        Ok(format!("attempt {}", ctx.attempt()))
    });
    let holds = move |ctx: OrchestrationContext, _: String| {
        let gate = Arc::clone(&gate);
        async move {
            hold(&gate);
            ctx.schedule_activity("Work", "").await
        }
    };
    world.start(&Node::new(calls("Long").register("Holds", holds), work).with(with_short_leases)).await;
    world.begin("long", "Calls", "").await;
    world.begin("holds", "Holds", "").await;
    assert_eq!(world.output("long").await, "attempt 1");
    crate::support::pass(LEASE).await;
    drop(open);
    assert_eq!(world.output("holds").await, "worked");
    let refused =
        world.runtime(0).await.observability_handle().unwrap().metrics_provider().outlast_snapshot();
    assert_eq!(refused.leases_lost, 0, "{refused:?}");
    world.end().await;
}
