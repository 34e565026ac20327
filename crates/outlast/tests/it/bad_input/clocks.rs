//! Clocks that jump.

use crate::support::{ALL, Node, Place, World, activities, calls, orchestrations};
use outlast::providers::{Clock, SystemClock};
use outlast::{ActivityContext, OrchestrationContext};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::Duration;

/// The machine's clock, set wrong by so many milliseconds.
#[derive(Default)]
struct Wrong(AtomicI64);

impl Clock for Wrong {
    fn now_ms(&self) -> u64 {
        SystemClock.now_ms().saturating_add_signed(self.0.load(SeqCst))
    }
}

const HOUR: i64 = 3_600_000;

/// An activity under which the clock jumps, so often.
fn jumping(clock: &Arc<Wrong>, by: i64, times: i64) -> outlast::runtime::registry::ActivityRegistryBuilder {
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

/// An hour back, ten times: leases seem to last longer, and nothing is delivered twice or never.
#[tokio::test]
async fn a_clock_that_goes_backwards_holds_up_nothing_that_is_due() {
    for kind in ALL {
        let clock = Arc::new(Wrong::default());
        let world = World::on(Place::open(kind, clock.clone(), false).await, None);
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
        world.start(&Node::new(all, jumping(&clock, -HOUR, 10))).await;
        assert_eq!(world.run("i", "Program", "").await, "1111111111", "{kind:?}");
        world.end().await;
    }
}

/// An hour forward under a running activity: its lease is over, so its outcome is refused and it runs again.
#[tokio::test]
async fn a_clock_that_leaps_forward_costs_a_delivery_at_most() {
    for kind in ALL {
        let clock = Arc::new(Wrong::default());
        let world = World::on(Place::open(kind, clock.clone(), false).await, None);
        world.start(&Node::new(calls("Jump"), jumping(&clock, HOUR, 3))).await;
        for n in 0..5 {
            world.begin(&format!("i-{n}"), "Calls", "").await;
        }
        for n in 0..5 {
            let attempts = world.output(&format!("i-{n}")).await;
            assert!(["1", "2", "3", "4"].contains(&attempts.as_str()), "{kind:?}: {attempts}");
        }
        world.end().await;
    }
}

/// A runtime whose clock is behind its store's: what the store calls due is due.
#[tokio::test]
async fn runtime_and_store_may_disagree_about_the_time() {
    for (kind, behind) in ALL.into_iter().flat_map(|kind| [(kind, -HOUR), (kind, HOUR)]) {
        let world = World::real(kind).await;
        let clock = Arc::new(Wrong(AtomicI64::new(behind)));
        let timers = |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_activity("Work", "").await?;
            ctx.schedule_activity("Work", "").await
        };
        let work = activities()
            .register("Work", |_: ActivityContext, _: String| async move { Ok("worked".to_string()) });
        let node = Node::new(orchestrations().register("Timers", timers), work)
            .with(move |options| options.clock = clock.clone());
        world.start(&node).await;
        assert_eq!(world.run("i", "Timers", "").await, "worked", "{kind:?}, {behind} ms");
        world.end().await;
    }
}
