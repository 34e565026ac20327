//! Awaits that are not durable (R9, rulings 20 and 24).

use crate::kit::*;
use outlast_engine::{Either2, OrchestrationContext};
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

/// A place for a waker that another thread wakes.
type Desk = Arc<Mutex<Vec<Waker>>>;

/// A future that only another thread can complete.
async fn outside(desk: &Desk) {
    poll_fn(|cx| {
        desk.lock().unwrap().push(cx.waker().clone());
        Poll::<()>::Pending
    })
    .await;
}

#[test]
fn r9_a_timer_of_tokio_alone_fails_at_once_and_names_the_last_durable_call() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let _inside = runtime.enter();
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        ctx.schedule_activity("A", "").await?;
        let _ = tokio::time::timeout(Duration::from_secs(1), std::future::pending::<()>()).await;
        Ok(String::new())
    });
    driver.give([]);
    driver.turn([done(2, "")], r#"
        3 ActivityCompleted <-2 ""
        4 OrchestrationFailed configuration: nondeterministic: waiting for something that is not durable: instance 'i' execution 1 awaits a future that only this process can complete (a sleep, a channel, a task, I/O), which would be lost with it; its last durable call was schedule_activity at foreign.rs; use schedule_timer for time, an activity for work, an event or queue for messages
        = Failed
    "#);
    let mut driver = InstanceDriver::new(|_, _| async move {
        let _ = tokio::time::timeout(Duration::from_secs(1), std::future::pending::<()>()).await;
        Ok(String::new())
    });
    driver.turn([], r#"
        1 OrchestrationStarted Main "in"
        2 OrchestrationFailed configuration: nondeterministic: waiting for something that is not durable: instance 'i' execution 1 awaits a future that only this process can complete (a sleep, a channel, a task, I/O), which would be lost with it; it made no durable call yet; use schedule_timer for time, an activity for work, an event or queue for messages
        = Failed
    "#);
}

#[test]
fn r9_a_foreign_wait_inside_a_combinator_fails_too() {
    for how in 0..5 {
        let desk = Desk::default();
        let mut driver = InstanceDriver::new(move |ctx, _| {
            let desk = Arc::clone(&desk);
            async move {
                match how {
                    0 => drop(ctx.join2(outside(&desk), std::future::pending::<()>()).await),
                    1 => assert!(ctx.select2(outside(&desk), std::future::pending::<()>()).await.is_first()),
                    2 => drop(ctx.join_all([outside(&desk)]).await),
                    3 => drop(ctx.select_all([outside(&desk)]).await),
                    _ => drop(futures::future::join_all((0..50).map(|_| outside(&desk))).await),
                }
                Ok(String::new())
            }
        });
        driver.give([]);
        assert!(driver.error().contains("waiting for something that is not durable"), "{how}");
        assert!(driver.error().contains("it made no durable call yet"), "{}", driver.error());
    }
}

#[test]
fn r9_a_wake_from_outside_fails_the_next_turn() {
    let desk = Desk::default();
    let left = Arc::clone(&desk);
    let mut driver = InstanceDriver::new(move |ctx, _| {
        let desk = Arc::clone(&left);
        async move {
            match ctx.select2(ctx.schedule_activity("A", ""), outside(&desk)).await {
                Either2::First(result) => result,
                Either2::Second(()) => Ok(String::new()),
            }
        }
    })
    .unchecked();
    driver.give([]);
    driver.give([raise("s", "")]);
    assert!(!driver.has_ended(), "a durable wait is open, and no waker was called");
    let wakers = std::mem::take(&mut *desk.lock().unwrap());
    std::thread::scope(|scope| {
        scope.spawn(move || wakers.into_iter().for_each(Waker::wake));
    });
    driver.turn([raise("s", "")], r#"
        4 ExternalEvent s ""
        5 OrchestrationFailed configuration: nondeterministic: waiting for something that is not durable: instance 'i' execution 1 awaits a future that only this process can complete (a sleep, a channel, a task, I/O), which would be lost with it; its last durable call was schedule_activity at foreign.rs; use schedule_timer for time, an activity for work, an event or queue for messages
        6 ActivityCancelRequested <-2 "orchestration_terminal_failed"
        - activity 2
        = Failed
    "#);
}

#[test]
fn r9_pending_alone_is_legal_until_cancelled() {
    let mut driver = InstanceDriver::new(|_, _| async move { std::future::pending().await });
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        ! awaits nothing
    "#,
    );
    let warned_again = driver.give([raise("s", "")]).report.awaits_nothing;
    assert!(!warned_again, "once is enough");
    driver.turn(
        [cancel("enough")],
        r#"
        3 OrchestrationCancelRequested "enough"
        4 OrchestrationFailed cancelled: canceled: enough
        = Failed
    "#,
    );
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let waits = (0..3).map(|_| std::future::pending::<()>());
        ctx.join_all(waits).await;
        Ok(String::new())
    });
    assert!(driver.give([]).report.awaits_nothing);
}

#[test]
fn r9_futures_without_a_poll_do_not_count_as_waits() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let _held = ctx.schedule_activity("A", "");
        std::future::pending().await
    });
    assert!(driver.give([]).report.awaits_nothing);
}

#[test]
fn r9_waits_that_are_over_do_not_count() {
    // Read, and given up.
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        ctx.dequeue_event("q").await;
        ctx.select2(ctx.schedule_activity("A", ""), ctx.schedule_wait("s")).await;
        std::future::pending().await
    });
    assert!(!driver.give([]).report.awaits_nothing);
    assert!(!driver.give([enqueue("q", "")]).report.awaits_nothing);
    assert!(driver.give([raise("s", "")]).report.awaits_nothing);
}

#[test]
fn r9_channels_between_parts_of_the_code_are_allowed() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let (send, receive) = tokio::sync::oneshot::channel();
        let (more, mut many) = tokio::sync::mpsc::channel(1);
        let producer = async {
            let result = ctx.schedule_activity("A", "").await;
            let _ = send.send(result);
            for n in 0..10 {
                // Room for one: each waits for the other.
                more.send(n).await.unwrap();
            }
            drop(more);
        };
        let consumer = async {
            let result = receive.await.unwrap();
            let mut sum = 0;
            while let Some(n) = many.recv().await {
                sum += n;
            }
            ctx.schedule_activity("B", format!("{result:?} {sum}")).await
        };
        let (consumed, ()) = ctx.join2(consumer, producer).await;
        consumed
    });
    driver.give([]);
    driver.turn(
        [done(2, "a")],
        r#"
        3 ActivityCompleted <-2 "a"
        4 ActivityScheduled B "Ok(\"a\") 45"
        > activity 4 B "Ok(\"a\") 45"
    "#,
    );
    driver.turn(
        [done(4, "b")],
        r#"
        5 ActivityCompleted <-4 "b"
        6 OrchestrationCompleted "b"
        = Completed
    "#,
    );
}

#[test]
fn r9_channels_in_a_future_set_are_allowed() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let (send, receive) = futures::channel::oneshot::channel::<String>();
        type Part<'a> = std::pin::Pin<Box<dyn Future<Output = String> + Send + 'a>>;
        // The receiver has the lower index: it is woken while a later one is polled.
        let parts: Vec<Part<'_>> = vec![
            Box::pin(async { receive.await.unwrap() }),
            Box::pin(async {
                let result = ctx.schedule_activity("A", "").await.unwrap();
                send.send(result).unwrap();
                "sent".to_string()
            }),
        ];
        Ok(ctx.join_all(parts).await.join(" "))
    });
    driver.give([]);
    driver.turn(
        [done(2, "a")],
        r#"
        3 ActivityCompleted <-2 "a"
        4 OrchestrationCompleted "a sent"
        = Completed
    "#,
    );
}

#[test]
fn channels_that_wait_for_each_other_fail_as_not_durable() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        ctx.schedule_activity("A", "").await?;
        let (_send, receive) = tokio::sync::oneshot::channel::<String>();
        receive.await.map_err(|error| error.to_string())
    });
    driver.give([]);
    driver.give([done(2, "")]);
    assert!(
        driver.error().contains("schedule_activity at crates/engine/tests/it/foreign.rs"),
        "{}",
        driver.error()
    );
}

#[test]
fn code_that_wakes_itself_is_polled_again() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        for _ in 0..1_000 {
            let mut yielded = false;
            poll_fn(|cx| {
                if std::mem::replace(&mut yielded, true) {
                    return Poll::Ready(());
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
        }
        ctx.schedule_activity("A", "").await
    });
    assert_eq!(driver.give([]).commit.worker_items.len(), 1);
}

#[test]
fn code_that_waits_by_waking_itself_is_stopped() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let activity = ctx.schedule_activity("A", "");
        let spin = poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        ctx.select2(activity, spin).await;
        Ok(String::new())
    });
    driver.turn([], r#"
        1 OrchestrationStarted Main "in"
        2 OrchestrationFailed configuration: nondeterministic: the code never rests: after event 1 of instance 'i' execution 1 it was woken by itself again and again without deciding or receiving anything; its last durable call was schedule_activity at foreign.rs; await a durable operation, or a channel that another part of the code sends to
        = Failed
    "#);
}

#[test]
fn durable_future_resolves_with_any_waker() {
    // Its wake-ups have no effect: the code runs when an event gives it a reason to.
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let mut message = ctx.dequeue_event("q");
        let deaf = poll_fn(|_| {
            let mut cx = std::task::Context::from_waker(Waker::noop());
            std::pin::Pin::new(&mut message).poll(&mut cx)
        });
        Ok(deaf.await)
    });
    driver.give([enqueue("q", "x")]);
    assert!(driver.has_ended());
}

#[test]
fn futures_without_waker_are_polled_whenever_the_code_runs() {
    async fn code(ctx: OrchestrationContext, _: String) -> Result<String, String> {
        let flag = Arc::new(Mutex::new(false));
        let seen = Arc::clone(&flag);
        // Hand-written, as the contract's combinators allow: it expects to be asked.
        let asks = poll_fn(move |_| if *seen.lock().unwrap() { Poll::Ready("seen") } else { Poll::Pending });
        let sets = async {
            let _ = ctx.schedule_activity("A", "").await;
            *flag.lock().unwrap() = true;
            let _ = ctx.schedule_activity("B", "").await;
            "set"
        };
        type Part<'a> = std::pin::Pin<Box<dyn Future<Output = &'static str> + Send + 'a>>;
        let parts: Vec<Part<'_>> = vec![Box::pin(asks), Box::pin(sets)];
        Ok(ctx.join_all(parts).await.join(" "))
    }
    let mut driver = InstanceDriver::new(code);
    driver.give([]);
    driver.give([done(2, "")]);
    driver.turn(
        [done(4, "")],
        r#"
        5 ActivityCompleted <-4 ""
        6 OrchestrationCompleted "seen set"
        = Completed
    "#,
    );
}
