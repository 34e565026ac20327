//! Rare log lines: a store that fails selected calls, code that blocks, cancelled activities.

use super::{activities, orchestrations, secret};
use crate::support::{CallHook, Cluster, Fault, Kind, LONGEST_WAIT, Node, pass};
use async_trait::async_trait;
use outlast::providers::{InstanceFilter, PruneOptions, WorkItem};
use outlast::runtime::{ActivityHandler, Attempt, OnMisfit};
use outlast::{ActivityContext, OrchestrationContext};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The state of the activity that ignores its cancellation.
#[derive(Default)]
struct IgnoresCancellation {
    /// The number of first deliveries that have started.
    begun: AtomicUsize,
    /// Whether an activity was delivered again.
    again: AtomicBool,
    /// The runs of the orchestration whose code changes after its first turn.
    misfits: AtomicUsize,
    /// Whether a turn was replayed by code that is older than a patch of its history.
    was_older: AtomicBool,
}

/// Fails until a failure is stored with the activity.
struct FailsOnce;

#[async_trait]
impl ActivityHandler for FailsOnce {
    async fn invoke(&self, _: ActivityContext, input: String) -> Result<String, String> {
        Ok(input)
    }

    async fn attempt(&self, ctx: ActivityContext, input: String) -> Attempt {
        match ctx.failures() {
            0 => Attempt::Retry { error: secret("error"), after: ms(10) },
            _ => Attempt::Done(self.invoke(ctx, input).await),
        }
    }
}

fn node(log_error_texts: bool, seen: &Arc<IgnoresCancellation>, lease: Duration) -> Node {
    let calls = |activity: &'static str| {
        move |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_activity_on_session(activity, secret("activity"), "session").await
        }
    };
    let blocks = |_: OrchestrationContext, input: String| async move {
        let until = Instant::now() + ms(500);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        Ok(input)
    };
    let parked = |_: OrchestrationContext, _: String| std::future::pending::<Result<String, String>>();
    let runs = Arc::clone(seen);
    let misfit = move |ctx: OrchestrationContext, input: String| {
        let is_first = runs.misfits.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            match is_first {
                true => ctx.schedule_timer(ms(10)).await,
                false => drop(ctx.schedule_wait(secret("event")).await),
            }
            Ok(input)
        }
    };
    let old = Arc::clone(seen);
    let older_code = move |ctx: OrchestrationContext, input: String| {
        let is_older = ctx.is_replaying() && !old.was_older.swap(true, Ordering::Relaxed);
        async move {
            if is_older {
                drop(ctx.schedule_wait(secret("event")).await);
            } else if ctx.patched("a step") {
                ctx.schedule_timer(ms(10)).await;
            }
            Ok(input)
        }
    };
    // The first delivery ignores its cancellation.
    let seen = Arc::clone(seen);
    let ignores_cancellation = move |ctx: ActivityContext, input: String| {
        let seen = Arc::clone(&seen);
        async move {
            match ctx.attempt() {
                1 => {
                    seen.begun.fetch_add(1, Ordering::Relaxed);
                    std::future::pending().await
                }
                _ => {
                    seen.again.store(true, Ordering::Relaxed);
                    Ok(input)
                }
            }
        }
    };
    let slow = |_: ActivityContext, input: String| async move {
        pass(ms(400)).await;
        Ok(input)
    };
    let all = orchestrations()
        .register("IgnoresCancellation", calls("IgnoresCancellation"))
        .register("FailsOnce", calls("FailsOnce"))
        .register("Slow", calls("Slow"))
        .register("Blocks", blocks)
        .register("Misfit", misfit)
        .register("OlderCode", older_code)
        .register("Parked", parked)
        .register_typed("Twice", |_: OrchestrationContext, input: String| async move { Ok(input) })
        .register_typed("Twice", |_: OrchestrationContext, input: String| async move { Ok(input) });
    let work = activities()
        .register("IgnoresCancellation", ignores_cancellation)
        .register("Slow", slow)
        .register_handler("FailsOnce", Arc::new(FailsOnce));
    // The registry logs this when it is built.
    drop(activities().register("Slow", slow).register("Slow", slow).build());
    Node::new(all, work).with(move |options| {
        options.log_error_texts = log_error_texts;
        options.on_misfit = OnMisfit::Park;
        options.warm_executions = 0;
        options.worker_concurrency = 4;
        options.worker_lock_timeout = lease;
        options.worker_lock_renewal_buffer = ms(100);
        options.orchestrator_lock_timeout = ms(300);
        options.orchestrator_lock_renewal_buffer = ms(100);
        options.session_lock_timeout = ms(200);
        options.session_lock_renewal_buffer = ms(100);
        options.session_idle_timeout = lease * 2;
        options.session_cleanup_interval = ms(50);
        options.activity_cancellation_grace_period = ms(10);
        options.unregistered_backoff.max_delay = ms(10);
        options.unregistered_backoff.base_delay = ms(10);
    })
}

pub(super) async fn run(log_error_texts: bool) {
    let cluster = Cluster::real(Kind::SqliteMemory).await;
    let hangs = Arc::new(AtomicBool::new(false));
    let hanging = Arc::clone(&hangs);
    // Only a lost lease ends this activity: no lease is renewed until the activity is delivered again.
    let seen = Arc::new(IgnoresCancellation::default());
    let ignores_cancellation = Arc::clone(&seen);
    let hook = CallHook::new(move |call, nth| match (call, nth) {
        ("abandon_work_item", _) if hanging.load(Ordering::Relaxed) => Fault::Hang,
        ("ack_orchestration_item", 1) => Fault::Permanent,
        ("ack_work_item" | "abandon_work_item" | "abandon_work_noted", 0) => Fault::Permanent,
        ("renew_work_item_lock", _) if !ignores_cancellation.again.load(Ordering::Relaxed) => {
            Fault::Permanent
        }
        ("load_turn" | "renew_session_lock" | "cleanup_orphaned_sessions", 0) => Fault::Transient,
        _ => Fault::None,
    });
    cluster.start_on(hook.around(cluster.store()), &node(log_error_texts, &seen, ms(300))).await;
    let client = &cluster.client;
    let no_activity =
        WorkItem::ExternalRaised { instance: "nobody".into(), name: "n".into(), data: secret("data") };
    // Whether or not the store accepts it.
    let _ = cluster.store().enqueue_for_worker(no_activity).await;
    client.enqueue_event("nobody", "queue", secret("data")).await.unwrap();
    for name in ["IgnoresCancellation", "FailsOnce", "Slow", "Blocks", "Twice", "Parked"] {
        client.start_orchestration(name, name, secret("input")).await.unwrap();
    }
    client.start_orchestration("Parked", "Parked", secret("again")).await.unwrap();
    for name in ["IgnoresCancellation", "FailsOnce", "Slow", "Blocks", "Twice"] {
        assert!(cluster.output(name).await.contains("7f3acanary"), "{name}");
    }
    client.start_orchestration("Misfit", "Misfit", secret("input")).await.unwrap();
    let until = Instant::now() + LONGEST_WAIT;
    while client.held_instance("Misfit").await.unwrap().is_none() {
        assert!(Instant::now() < until, "an instance with changed code is parked");
        pass(ms(10)).await;
    }
    client.start_orchestration("OlderCode", "OlderCode", secret("input")).await.unwrap();
    assert!(cluster.output("OlderCode").await.contains("7f3acanary"), "newer code ends the instance");
    assert!(seen.was_older.load(Ordering::Relaxed), "older code gave a turn back");
    // The second start must be processed before the cancellation, also if the store returned errors at first.
    let until = Instant::now() + LONGEST_WAIT;
    let mut empty = 0;
    while empty < 3 {
        assert!(Instant::now() < until, "the queue does not drain");
        empty = if client.get_queue_depths().await.unwrap().orchestrator_queue == 0 { empty + 1 } else { 0 };
        pass(ms(50)).await;
    }
    client.cancel_instance("Parked", secret("reason")).await.unwrap();
    cluster.failure("Parked").await;
    // Sessions become idle.
    pass(ms(1_200)).await;
    let options = PruneOptions { keep_last: Some(1), ..PruneOptions::default() };
    client.prune_executions("Slow", options.clone()).await.unwrap();
    let filter = InstanceFilter { instance_ids: Some(vec!["Slow".to_string()]), ..InstanceFilter::default() };
    client.prune_executions_bulk(filter.clone(), options).await.unwrap();
    client.delete_instance_bulk(filter).await.unwrap();
    // An activity that does not end, under a lease that does not expire, on a store that does not accept a give-back.
    cluster.runtime(0).await.shutdown(None).await;
    let patient =
        cluster.start_on(hook.around(cluster.store()), &node(log_error_texts, &seen, LONGEST_WAIT)).await;
    client.start_orchestration("last", "IgnoresCancellation", secret("input")).await.unwrap();
    let until = Instant::now() + LONGEST_WAIT;
    while seen.begun.load(Ordering::Relaxed) < 2 {
        assert!(Instant::now() < until, "the activity does not start");
        tokio::task::yield_now().await;
    }
    hangs.store(true, Ordering::Relaxed);
    cluster.runtime(patient).await.shutdown(Some(20)).await;
    cluster.end().await;
}
