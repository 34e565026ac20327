//! The programs of docs/guide/sagas.md.

// guide: program
use outlast::prelude::*;
#[cfg(test)]
use outlast::testing::Test;
use outlast::time::days;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Serialize, Deserialize, outlast::Message)]
struct Approval {
    yes: bool,
}

/// A name and its booking, or `None` if the name is closed.
type Entry = (String, Option<i64>);

/// A fake of a bank and a warehouse: its bookings by name, and `None` for a name that is closed. A second booking under a name changes
/// nothing, and neither does a booking under a closed name.
#[derive(Clone, Default)]
struct Books(Arc<Mutex<Vec<Entry>>>);

impl Books {
    async fn book(&self, name: String, cents: i64) {
        // The way to the bank, as of a real request: a crash or a request to cancel can come here.
        tokio::task::yield_now().await;
        let mut books = self.lock();
        if books.iter().all(|(booked, _)| *booked != name) {
            books.push((name, Some(cents)));
        }
    }

    /// Cancels a booking and closes its name, also if there is no booking yet.
    async fn cancel(&self, name: String) {
        tokio::task::yield_now().await;
        let (mut books, closed) = (self.lock(), (name, None));
        if !books.contains(&closed) {
            books.push(closed);
        }
    }

    /// What the activities did, in its order: nothing may happen twice.
    fn effects(&self) -> Vec<Entry> {
        self.lock().clone()
    }

    /// What is left: the bookings that were not cancelled afterwards. A booking after its cancellation is left.
    fn kept(&self) -> Vec<Entry> {
        let mut kept = Vec::new();
        for (name, cents) in self.effects() {
            kept.retain(|(booked, _)| *booked != name);
            if cents.is_some() {
                kept.push((name, cents));
            }
        }
        kept
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[outlast::activity(retry = 3)]
async fn reserve(_ctx: ActivityContext, State(books): State<Books>, order: String) -> Result<(), String> {
    books.book(format!("goods of {order}"), 1).await;
    Ok(())
}

#[outlast::activity(retry = 10)]
async fn release(_ctx: ActivityContext, State(books): State<Books>, order: String) -> Result<(), String> {
    books.cancel(format!("goods of {order}")).await;
    Ok(())
}

#[outlast::activity(retry = 3)]
async fn charge(
    _ctx: ActivityContext,
    State(books): State<Books>,
    order: String,
    cents: i64,
) -> Result<(), String> {
    books.book(format!("money of {order}"), cents).await;
    Ok(())
}

#[outlast::activity(retry = 10)]
async fn refund(_ctx: ActivityContext, State(books): State<Books>, order: String) -> Result<(), String> {
    books.cancel(format!("money of {order}")).await;
    Ok(())
}

#[outlast::orchestration(accepts(Approval), on_cancel = undo)]
async fn order(ctx: OrchestrationContext, order: String, cents: i64) -> Result<String, String> {
    let mut undo = Undo::new(&ctx);
    match fulfil(&ctx, &mut undo, &order, cents).await {
        Ok(()) => {
            undo.forget();
            Ok(format!("{order} is on its way"))
        }
        Err(error) => undo.fail(error).await,
    }
}

/// The steps that must succeed. Each step names its undo first: an activity that fails may have done its work.
#[outlast::deterministic]
async fn fulfil(ctx: &OrchestrationContext, undo: &mut Undo, order: &str, cents: i64) -> Result<(), String> {
    undo.push::<release>(order.to_string());
    reserve::call(ctx, order.to_string()).await?;
    undo.push::<refund>(order.to_string());
    charge::call(ctx, order.to_string(), cents).await?;
    match ctx.next::<Approval>().within(days(3)).await? {
        Some(Approval { yes: true }) => Ok(()),
        Some(Approval { yes: false }) => Err("refused".to_string()),
        None => Err("not approved in time".to_string()),
    }
}

#[cfg(test)]
fn shop() -> Test<order> {
    Test::<order>::new(outlast::module![reserve, release, charge, refund, order])
}

#[test]
fn an_approved_order_is_booked_once_at_every_crash() {
    let test = shop().world(Books::default, Books::effects).send_at(days(2), Approval { yes: true });
    let run = test.run(order::input("o-1".into(), 700));
    assert_eq!(run.output(), "o-1 is on its way");
    let effects = [("goods of o-1", Some(1)), ("money of o-1", Some(700))];
    assert_eq!(run.observed(), [format!("{effects:?}")]);
    test.crash_everywhere(order::input("o-1".into(), 700)).holds();
}

#[test]
fn a_refused_order_is_undone_once_at_every_crash() {
    let test = shop().world(Books::default, Books::effects).send_at(days(2), Approval { yes: false });
    let run = test.run(order::input("o-1".into(), 700));
    assert_eq!(run.failure(), "refused");
    let done = [("goods of o-1", Some(1)), ("money of o-1", Some(700))];
    let undone = [("money of o-1", None), ("goods of o-1", None)];
    assert_eq!(run.observed(), [format!("{:?}", [done, undone].concat())]);
    test.crash_everywhere(order::input("o-1".into(), 700)).holds();
}

#[test]
fn a_failed_step_leaves_nothing() {
    let test = shop().world(Books::default, Books::kept).send_at(days(2), Approval { yes: true });
    test.fail_everywhere(order::input("o-1".into(), 700)).holds();
}

#[test]
fn a_cancelled_order_leaves_no_booking_at_every_crash() {
    let test = shop().world(Books::default, Books::kept).cancel_at(days(1), "the customer left");
    let run = test.run(order::input("o-1".into(), 700));
    assert_eq!(run.result(), &Err(CallError::Cancelled("the customer left".into())));
    assert_eq!(run.observed(), ["[]"]);
    test.crash_everywhere(order::input("o-1".into(), 700)).holds();
}

#[test]
fn an_order_that_is_cancelled_at_any_moment_leaves_nothing() {
    let test = shop().world(Books::default, Books::kept).send_at(days(2), Approval { yes: true });
    test.cancel_everywhere(order::input("o-1".into(), 700)).holds();
}
// guide: end

// guide: observe
#[outlast::activity]
async fn print_page(_ctx: ActivityContext, page: u32) -> Result<(), String> {
    println!("page {page}");
    Ok(())
}

/// A request to cancel ends the loop between two pages. The pages that are printed count.
#[outlast::orchestration(on_cancel = observe, grace = "1h")]
async fn print(ctx: OrchestrationContext, pages: u32) -> Result<u32, String> {
    let mut cancelled = std::pin::pin!(ctx.cancelled());
    for page in 1..=pages {
        print_page::call(&ctx, page).await?;
        if let Either2::First(reason) = ctx.select2(cancelled.as_mut(), ctx.sleep(days(1))).await {
            ctx.trace_info(format!("stopped after page {page}: {reason}"));
            return Ok(page);
        }
    }
    Ok(pages)
}
// guide: end

#[test]
fn a_cancelled_print_counts_its_pages() {
    let test = Test::<print>::new(outlast::module![print, print_page]);
    assert_eq!(test.run(5).output(), &5);
    let run = test.cancel_at(outlast::testing::hours(30), "no paper").run(5);
    assert_eq!((run.output(), run.elapsed()), (&2, outlast::testing::hours(30)));
}

// guide: shielded
/// The request to cancel waits until both accounts agree.
#[outlast::orchestration(on_cancel = undo)]
async fn transfer(ctx: OrchestrationContext, cents: i64) -> Result<i64, String> {
    let both = async {
        charge::call(&ctx, "from".into(), -cents).await?;
        charge::call(&ctx, "to".into(), cents).await
    };
    ctx.shielded(both).await?;
    ctx.sleep(days(1)).await;
    Ok(cents)
}
// guide: end

#[test]
fn a_shielded_part_is_not_interrupted() {
    let run = Test::<transfer>::new(outlast::module![transfer, charge])
        .world(Books::default, Books::effects)
        .cancel_at(std::time::Duration::ZERO, "changed my mind")
        .run(5);
    assert_eq!(run.result(), &Err(CallError::Cancelled("changed my mind".into())));
    let effects = [("money of from", Some(-5)), ("money of to", Some(5))];
    assert_eq!(run.observed(), [format!("{effects:?}")]);
}

#[test]
fn a_booking_after_its_cancellation_is_kept() {
    let books = Books::default();
    let money = |cents| ("money".to_string(), cents);
    books.lock().extend([money(Some(1)), money(None)]);
    assert_eq!(books.kept(), []);
    books.lock().push(money(Some(2)));
    assert_eq!(books.kept(), [money(Some(2))]);
}
