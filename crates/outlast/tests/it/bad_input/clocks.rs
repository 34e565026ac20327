//! Clocks that jump forward or backward.

use crate::support::{ALL, Cluster, Node, TestStore, activities, calls, orchestrations};
use outlast::providers::{Clock, SystemClock};
use outlast::{ActivityContext, OrchestrationContext};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::Duration;

/// The machine's clock plus an offset in milliseconds.
#[derive(Default)]
struct OffsetClock(AtomicI64);

impl Clock for OffsetClock {
    fn now_ms(&self) -> u64 {
        SystemClock.now_ms().saturating_add_signed(self.0.load(SeqCst))
    }
}

const HOUR: i64 = 3_600_000;

/// An activity that moves the clock, `times` times.
fn jumping(
    clock: &Arc<OffsetClock>,
    by: i64,
    times: i64,
) -> outlast::runtime::registry::ActivityRegistryBuilder {
    let clock = Arc::clone(clock);
    activities().register("Jump", move |ctx: ActivityContext, _: String| {
        let clock = Arc::clone(&clock);
        async move {
            if clock.0.load(SeqCst) != by * times {
                clock.0.fetch_add(by, SeqCst);
            }
            Ok(ctx.attempt().to_string())
        }
    })
}

/// The clock moves back by an hour, ten times: leases seem to last longer, and every activity runs exactly once.
#[tokio::test]
async fn a_clock_that_moves_back_delays_no_due_item() {
    for kind in ALL {
        let clock = Arc::new(OffsetClock::default());
        let cluster = Cluster::on(TestStore::open(kind, clock.clone(), false).await, None);
        let program = |ctx: OrchestrationContext, _: String| async move {
            let mut attempts = Vec::new();
            for _ in 0..10 {
                attempts.push(ctx.schedule_activity("Jump", "").await?);
                ctx.schedule_timer(Duration::from_millis(5)).await;
                ctx.utc_now().await?;
            }
            Ok(attempts.concat())
        };
        let all = orchestrations().register("Program", program);
        cluster.start(&Node::new(all, jumping(&clock, -HOUR, 10))).await;
        assert_eq!(cluster.run("i", "Program", "").await, "1111111111", "{kind:?}");
        cluster.end().await;
    }
}

/// The clock moves forward by an hour while an activity runs: its lease has expired, so its outcome is rejected and it runs again.
#[tokio::test]
async fn a_clock_that_moves_forward_causes_redelivery_only() {
    for kind in ALL {
        let clock = Arc::new(OffsetClock::default());
        let cluster = Cluster::on(TestStore::open(kind, clock.clone(), false).await, None);
        cluster.start(&Node::new(calls("Jump"), jumping(&clock, HOUR, 3))).await;
        for n in 0..5 {
            cluster.begin(&format!("i-{n}"), "Calls", "").await;
        }
        for n in 0..5 {
            let attempts = cluster.output(&format!("i-{n}")).await;
            assert!(["1", "2", "3", "4"].contains(&attempts.as_str()), "{kind:?}: {attempts}");
        }
        cluster.end().await;
    }
}

/// The clock of the runtime is behind the clock of the store: the clock of the store decides what is due.
#[tokio::test]
async fn a_runtime_with_a_clock_behind_the_store_runs_due_timers() {
    for (kind, behind) in ALL.into_iter().flat_map(|kind| [(kind, -HOUR), (kind, HOUR)]) {
        let cluster = Cluster::real(kind).await;
        let clock = Arc::new(OffsetClock(AtomicI64::new(behind)));
        let timers = |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_activity("Work", "").await?;
            ctx.schedule_activity("Work", "").await
        };
        let work = activities()
            .register("Work", |_: ActivityContext, _: String| async move { Ok("worked".to_string()) });
        let node = Node::new(orchestrations().register("Timers", timers), work)
            .with(move |options| options.clock = clock.clone());
        cluster.start(&node).await;
        assert_eq!(cluster.run("i", "Timers", "").await, "worked", "{kind:?}, {behind} ms");
        cluster.end().await;
    }
}
