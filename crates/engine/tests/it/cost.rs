//! The cost of a turn, counted in polls and allocations.

use crate::kit::*;
use outlast_engine::OrchestrationContext;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};

/// A future that counts how often it is polled.
struct Counted<F> {
    future: Pin<Box<F>>,
    polls: Arc<AtomicUsize>,
}

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.polls.fetch_add(1, Relaxed);
        self.future.as_mut().poll(cx)
    }
}

fn counted<F: Future>(future: F, polls: &Arc<AtomicUsize>) -> Counted<F> {
    Counted { future: Box::pin(future), polls: Arc::clone(polls) }
}

/// Joins many of a kind, in one of three ways.
fn joining(kind: &'static str, how: &'static str, count: usize, polls: &Arc<AtomicUsize>) -> InstanceDriver {
    let polls = Arc::clone(polls);
    let code = move |ctx: OrchestrationContext, _| {
        let polls = Arc::clone(&polls);
        async move {
            let one = |n: usize| {
                let ctx = ctx.clone();
                async move {
                    match kind {
                        "activity" => ctx.schedule_activity("A", n.to_string()).await,
                        "child" => ctx.schedule_sub_orchestration("C", n.to_string()).await,
                        "wait" => Ok(ctx.schedule_wait("s").await),
                        _ => Ok(ctx.dequeue_event("q").await),
                    }
                }
            };
            let all = (0..count).map(|n| counted(one(n), &polls));
            let outcomes = match how {
                "ours" => ctx.join_all(all).await,
                _ => futures::future::join_all(all).await,
            };
            outcomes
                .into_iter()
                .collect::<Result<Vec<String>, String>>()
                .map(|outcomes| outcomes.len().to_string())
        }
    };
    // Replaying each of ten thousand turns from the start would be the cost that is not there.
    InstanceDriver::new(code).unchecked()
}

fn answer(kind: &str, id: u64) -> Message {
    match kind {
        "activity" => done(id, ""),
        "child" => child_done(id, ""),
        "wait" => raise("s", ""),
        _ => enqueue("q", ""),
    }
}

#[test]
fn p5_a_join_of_ten_thousand_polls_each_child_twice() {
    const COUNT: usize = 10_000;
    for (kind, how) in
        [("activity", "ours"), ("activity", "theirs"), ("child", "ours"), ("wait", "ours"), ("queue", "ours")]
    {
        // One outcome per turn, last first where that is possible.
        let polls = Arc::new(AtomicUsize::new(0));
        let mut driver = joining(kind, how, COUNT, &polls);
        driver.give([]);
        for id in (2..COUNT as u64 + 2).rev() {
            assert!(!driver.has_ended_now());
            driver.give([answer(kind, id)]);
        }
        assert!(driver.has_ended(), "{kind} {how}");
        assert_eq!(polls.load(Relaxed), 2 * COUNT, "{kind} {how}");
        // All in one batch, and again from the stored history.
        polls.store(0, Relaxed);
        let mut driver = joining(kind, how, COUNT, &polls);
        driver.give([]);
        driver.forget();
        driver.give((2..COUNT as u64 + 2).map(|id| answer(kind, id)));
        assert!(driver.has_ended());
        assert_eq!(polls.load(Relaxed), 3 * COUNT, "{kind} {how}");
    }
}

#[test]
fn p1_a_warm_turn_costs_the_same_at_any_length_of_history() {
    let polls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&polls);
    let code = move |ctx: OrchestrationContext, _| {
        let chain = async move {
            loop {
                let message = ctx.dequeue_event("q").await;
                let step = async { ctx.schedule_activity("A", message).await };
                let held = ctx.schedule_wait("s");
                ctx.join2(step, async { drop(held) }).await.0?;
            }
        };
        counted(chain, &counter)
    };
    let mut driver = InstanceDriver::new(code).unchecked();
    driver.give([]);
    let mut costs = Vec::new();
    for _ in 0..1_000 {
        polls.store(0, Relaxed);
        let asked = driver.give([enqueue("q", "x")]);
        let id = match &asked.commit.worker_items[..] {
            [outlast_model::WorkItem::ActivityExecute { id, .. }] => *id,
            other => panic!("{other:?}"),
        };
        let answered = driver.give([done(id, "")]);
        let written = asked.commit.history_delta.len() + answered.commit.history_delta.len();
        costs.push((polls.load(Relaxed), written));
    }
    assert!(costs.iter().all(|cost| *cost == costs[0]), "{:?} .. {:?}", costs[0], costs.last());
    assert_eq!(costs[0], (2, 6));
    assert_eq!(driver.memory().unwrap().last_event_id(), driver.history.len() as u64);
}

#[test]
fn memory_of_an_execution_grows_by_the_bytes_of_its_new_events() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        loop {
            ctx.schedule_activity("A", "x".repeat(1_000)).await?;
        }
    });
    driver.give([]);
    let before = driver.memory().unwrap().bytes();
    driver.give([done(2, &"y".repeat(5_000))]);
    let grown = driver.memory().unwrap().bytes() - before;
    assert!((6_000..8_000).contains(&grown), "{grown}");
}
