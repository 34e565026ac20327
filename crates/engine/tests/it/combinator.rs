//! Waits for several futures at once, with the combinators of the context and of other crates (spec runtime 1.13, ruling 24).

use crate::kit::*;
use futures::stream::{FuturesUnordered, StreamExt};
use outlast_engine::{DurableFuture, Either2, Either3, OrchestrationContext};
use std::time::Duration;

type Outcome = Result<String, String>;

fn activities(ctx: &OrchestrationContext, count: usize) -> Vec<DurableFuture<Outcome>> {
    (0..count).map(|n| ctx.schedule_activity("A", n.to_string())).collect()
}

#[test]
fn joins_keep_the_order_of_arguments() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let many = ctx.join(activities(&ctx, 3)).await;
        let (a, b) = ctx.join2(ctx.schedule_activity("B", ""), async { 5 }).await;
        let (c, d, e) = ctx.join3(async { 1 }, ctx.schedule_activity("C", ""), async { 3 }).await;
        let none: Vec<u8> = ctx.join(Vec::<std::future::Ready<u8>>::new()).await;
        Ok(format!("{many:?} {a:?} {b} {c} {d:?} {e} {none:?}"))
    });
    driver.give([]);
    driver.give([done(4, "2"), done(2, "0")]);
    driver.give([done(3, "1")]);
    driver.give([done(8, "b")]);
    driver.turn(
        [done(10, "c")],
        r#"
        11 ActivityCompleted <-10 "c"
        12 OrchestrationCompleted "[Ok(\"0\"), Ok(\"1\"), Ok(\"2\")] Ok(\"b\") 5 1 Ok(\"c\") 3 []"
        = Completed
    "#,
    );
}

#[test]
fn select_takes_the_first_outcome_and_in_a_tie_the_first_argument() {
    let code = |ctx: OrchestrationContext, _| async move {
        let (a, b, c) =
            (ctx.schedule_activity("A", ""), ctx.schedule_activity("B", ""), ctx.schedule_activity("C", ""));
        ctx.schedule_activity("first", "").await?;
        Ok(format!("{:?}", ctx.select3(c, b, a).await))
    };
    // All three are ready when the select begins.
    let mut driver = InstanceDriver::new(code);
    driver.give([]);
    driver.give([done(2, "a"), done(3, "b"), done(4, "c"), done(5, "")]);
    assert!(format!("{:?}", driver.history).contains("First(Ok(\\\"c\\\"))"));
    // One by one.
    let mut driver = InstanceDriver::new(code);
    driver.give([]);
    driver.give([done(5, ""), done(3, "b"), done(4, "c")]);
    assert!(format!("{:?}", driver.history).contains("Second(Ok(\\\"b\\\"))"));
}

#[test]
fn either_index_and_tuple_name_the_ready_argument() {
    let first: Either2<u8, u8> = Either2::First(1);
    assert!(first.is_first() && !first.is_second());
    let second: Either2<u8, u8> = Either2::Second(2);
    assert!(second.is_second() && !second.is_first());
    assert_eq!((first.index(), Either2::<u8, u8>::Second(2).index()), (0, 1));
    assert_eq!(Either2::<u8, u8>::Second(2).into_tuple(), (1, 2));
    let either3 = [Either3::First(7), Either3::Second(8), Either3::Third(9)];
    assert_eq!(either3.map(|either| either.index()), [0, 1, 2]);
    let either3 = [Either3::First(7), Either3::Second(8), Either3::Third(9)];
    assert_eq!(either3.map(Either3::into_tuple), [(0, 7), (1, 8), (2, 9)]);
}

#[test]
fn select_all_and_race_cancel_the_others() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let (index, output) = ctx.select_all(activities(&ctx, 3)).await;
        let raced = ctx.race(activities(&ctx, 2)).await;
        Ok(format!("{index} {output:?} {raced:?}"))
    });
    driver.give([]);
    driver.turn(
        [done(3, "1"), done(2, "0")],
        r#"
        5 ActivityCompleted <-3 "1"
        6 ActivityCompleted <-2 "0"
        7 ActivityScheduled A "0"
        8 ActivityScheduled A "1"
        9 ActivityCancelRequested <-2 "dropped_future"
        10 ActivityCancelRequested <-4 "dropped_future"
        > activity 7 A "0"
        > activity 8 A "1"
        - activity 4
    "#,
    );
    driver.turn(
        [fails(7, "no")],
        r#"
        11 ActivityFailed <-7 application: no
        12 ActivityCancelRequested <-8 "dropped_future"
        13 OrchestrationCompleted "1 Ok(\"1\") Err(\"no\")"
        - activity 8
        = Completed
    "#,
    );
}

#[test]
fn select_all_over_an_empty_list_fails() {
    let mut driver =
        InstanceDriver::new(
            |ctx, _| async move { ctx.select_all(Vec::<DurableFuture<Outcome>>::new()).await.1 },
        );
    driver.turn([], r#"
        1 OrchestrationStarted Main "in"
        2 OrchestrationFailed application: a select over no futures at combinator.rs would wait for ever: give it at least one (refused in instance 'i')
        = Failed
    "#);
}

#[test]
fn nested_combinators_replay_in_the_order_of_history() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let group = |name: &'static str| {
            let ctx = ctx.clone();
            async move {
                let pair = async {
                    let (a, b) =
                        ctx.join2(ctx.schedule_activity(name, "a"), ctx.schedule_activity(name, "b")).await;
                    format!("{a:?}{b:?}")
                };
                match ctx.select2(pair, ctx.schedule_timer(Duration::from_secs(1))).await {
                    Either2::First(pair) => pair,
                    Either2::Second(()) => format!("{name} late"),
                }
            }
        };
        let (winner, output) = ctx.select_all([group("x"), group("y")]).await;
        let rest = ctx.join_all([group("z"), group("w")]).await;
        Ok(format!("{winner} {output} {rest:?}"))
    });
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        2 TimerCreated @2010
        3 ActivityScheduled x "a"
        4 ActivityScheduled x "b"
        5 TimerCreated @2010
        6 ActivityScheduled y "a"
        7 ActivityScheduled y "b"
        > activity 3 x "a"
        > activity 4 x "b"
        > activity 6 y "a"
        > activity 7 y "b"
        > timer 2 @2010
        > timer 5 @2010
    "#,
    );
    driver.turn(
        [done(3, "1"), done(6, "2"), done(7, "3"), fired(2)],
        r#"
        8 ActivityCompleted <-3 "1"
        9 ActivityCompleted <-6 "2"
        10 ActivityCompleted <-7 "3"
        11 TimerFired <-2
        12 TimerCreated @2020
        13 ActivityScheduled z "a"
        14 ActivityScheduled z "b"
        15 TimerCreated @2020
        16 ActivityScheduled w "a"
        17 ActivityScheduled w "b"
        18 ActivityCancelRequested <-4 "dropped_future"
        > activity 13 z "a"
        > activity 14 z "b"
        > activity 16 w "a"
        > activity 17 w "b"
        > timer 12 @2020
        > timer 15 @2020
        - activity 4
    "#,
    );
    driver.turn(
        [fired(15), done(13, "z"), done(14, "z"), fired(12)],
        r#"
        19 TimerFired <-15
        20 ActivityCompleted <-13 "z"
        21 ActivityCompleted <-14 "z"
        22 TimerFired <-12
        23 ActivityCancelRequested <-16 "dropped_future"
        24 ActivityCancelRequested <-17 "dropped_future"
        25 OrchestrationCompleted "1 Ok(\"2\")Ok(\"3\") [\"Ok(\\\"z\\\")Ok(\\\"z\\\")\", \"w late\"]"
        - activity 16
        - activity 17
        = Completed
    "#,
    );
}

/// Runs a program that asks for `count` activities, answering one per turn in a scrambled order.
fn answer_scrambled(mut driver: InstanceDriver, count: u64) -> InstanceDriver {
    driver.give([]);
    for n in 0..count {
        // 7 and the counts used here have no common factor.
        let id = 2 + (n * 7) % count;
        driver.give([done(id, &id.to_string())]);
    }
    driver
}

#[test]
fn join_all_of_the_futures_crate_replays() {
    let code = |ctx: OrchestrationContext, input: String| async move {
        let count = input.parse().unwrap();
        let outcomes = futures::future::join_all(activities(&ctx, count)).await;
        let sum: u64 = outcomes.into_iter().map(|outcome| outcome.unwrap().parse::<u64>().unwrap()).sum();
        Ok(sum.to_string())
    };
    // Below and above its threshold for waking by name.
    for count in [3, 100] {
        let mut driver = InstanceDriver::new(code);
        driver.opening.input = count.to_string();
        let driver = answer_scrambled(driver, count);
        let sum: u64 = (2..count + 2).sum();
        assert!(format!("{:?}", driver.history.last()).contains(&format!("\"{sum}\"")));
    }
    // A thousand in one batch.
    let mut driver = InstanceDriver::new(code);
    driver.opening.input = "1000".to_string();
    driver.give([]);
    driver.give((2..1_002).rev().map(|id| done(id, "1")));
    assert!(format!("{:?}", driver.history.last()).contains("output: \"1000\""));
}

#[test]
fn futures_unordered_yields_in_the_order_of_history() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let mut all: FuturesUnordered<_> = activities(&ctx, 4).into_iter().collect();
        let mut order = Vec::new();
        while let Some(outcome) = all.next().await {
            order.push(outcome?);
            if order.len() == 2 {
                all.push(ctx.schedule_activity("more", ""));
            }
        }
        Ok(order.join(" "))
    });
    driver.give([]);
    driver.give([done(4, "c"), done(2, "a")]);
    driver.give([done(5, "d")]);
    driver.give([done(8, "more")]);
    driver.turn(
        [done(3, "b")],
        r#"
        11 ActivityCompleted <-3 "b"
        12 OrchestrationCompleted "c a d more b"
        = Completed
    "#,
    );
}

#[test]
fn select_of_the_futures_crate_replays() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        use futures::future::Either;
        let (a, b) = (ctx.schedule_activity("A", ""), ctx.schedule_activity("B", ""));
        match futures::future::select(a, b).await {
            Either::Left((a, b)) => Ok(format!("{a:?} then {:?}", b.await)),
            Either::Right((b, a)) => Ok(format!("{b:?} then {:?}", a.await)),
        }
    });
    driver.give([]);
    driver.give([done(3, "b")]);
    driver.turn(
        [done(2, "a")],
        r#"
        5 ActivityCompleted <-2 "a"
        6 OrchestrationCompleted "Ok(\"b\") then Ok(\"a\")"
        = Completed
    "#,
    );
}

#[test]
fn biased_select_of_tokio_replays() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let mut events = Vec::new();
        let mut ticks = 0;
        let mut wait = ctx.schedule_wait("s");
        while ticks < 2 {
            let timer = ctx.schedule_timer(Duration::from_secs(1));
            tokio::select! {
                biased;
                event = &mut wait => {
                    events.push(event);
                    wait = ctx.schedule_wait("s");
                }
                () = timer => ticks += 1,
            }
        }
        Ok(events.join(" "))
    });
    driver.give([]);
    driver.give([raise("s", "a")]);
    driver.give([fired(6)]);
    driver.turn(
        [raise("s", "b")],
        r#"
        9 ExternalEvent s "b"
        10 ExternalSubscribed s
        11 TimerCreated @2040
        > timer 11 @2040
    "#,
    );
    driver.turn(
        [fired(11)],
        r#"
        12 TimerFired <-11
        13 ExternalSubscribedCancelled <-10 "dropped_future"
        14 OrchestrationCompleted "a b"
        = Completed
    "#,
    );
}

#[test]
fn join_resolves_after_its_waker_changes() {
    // First polled by a select, then by a set that polls only woken futures.
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let mut join = Box::pin(ctx.join_all(activities(&ctx, 2)));
        assert!(ctx.select2(&mut join, ctx.schedule_timer(Duration::ZERO)).await.is_second());
        let joined = FuturesUnordered::from_iter([join]).next().await;
        Ok(format!("{joined:?}"))
    });
    driver.give([]);
    driver.give([fired(4)]);
    driver.give([done(2, "a")]);
    driver.turn(
        [done(3, "b")],
        r#"
            7 ActivityCompleted <-3 "b"
            8 OrchestrationCompleted "Some([Ok(\"a\"), Ok(\"b\")])"
            = Completed
        "#,
    );
}

/// Ends with one future while it holds another.
struct Holding(DurableFuture<Outcome>, #[allow(dead_code, reason = "held")] DurableFuture<Outcome>);

impl Future for Holding {
    type Output = Outcome;

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<Outcome> {
        std::pin::Pin::new(&mut self.0).poll(cx)
    }
}

#[test]
fn joined_future_is_dropped_when_it_is_ready() {
    for how in 0..2 {
        let mut driver = InstanceDriver::new(move |ctx, _| async move {
            let holding =
                |name: &str| Holding(ctx.schedule_activity(name, ""), ctx.schedule_activity("held", ""));
            match how {
                0 => drop(ctx.join_all([holding("A"), holding("B")]).await),
                _ => drop(ctx.join2(holding("A"), holding("B")).await),
            }
            Ok(String::new())
        });
        driver.give([]);
        let text = output_text(&driver.give([done(2, "")]));
        assert!(text.contains("ActivityCancelRequested <-3 \"dropped_future\""), "{text}");
    }
}

#[test]
fn dropping_a_mapped_future_cancels_its_operation_once() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let mapped =
            ctx.schedule_activity("A", "").map(|result| result.map(|text| text.len())).map(|length| length);
        let dropped = ctx.schedule_activity("B", "").map(|_| 1);
        let length = mapped.await?;
        drop(dropped);
        ctx.schedule_activity("C", length.to_string()).await
    });
    driver.give([]);
    driver.turn(
        [done(2, "four")],
        r#"
        4 ActivityCompleted <-2 "four"
        5 ActivityScheduled C "4"
        6 ActivityCancelRequested <-3 "dropped_future"
        > activity 5 C "4"
        - activity 3
    "#,
    );
}

#[test]
fn future_panics_when_it_is_awaited_after_its_outcome() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let mut once = ctx.schedule_activity("A", "");
        (&mut once).await?;
        (&mut once).await
    });
    driver.give([]);
    driver.turn([done(2, "a")], r#"
        3 ActivityCompleted <-2 "a"
        4 OrchestrationFailed panicked: orchestration panicked: a durable future was awaited again after its outcome was taken
        = Failed
    "#);
}
