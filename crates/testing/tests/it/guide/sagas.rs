//! The programs of docs/guide/sagas.md.

// guide: program
use outlast::prelude::*;
#[cfg(test)]
use outlast::testing::Test;
use outlast::time::days;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Serialize, Deserialize, outlast::Message)]
struct Approval {
    yes: bool,
}

/// A bank and a warehouse. A booking has a name: a second booking under the same name changes nothing.
#[derive(Clone, Default)]
struct Books(Arc<Mutex<BTreeMap<String, i64>>>);

impl Books {
    fn book(&self, name: String, cents: i64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_insert(cents);
    }

    fn cancel(&self, name: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    fn all(&self) -> BTreeMap<String, i64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[outlast::activity(retry = 3)]
async fn reserve(_ctx: ActivityContext, State(books): State<Books>, order: String) -> Result<(), String> {
    books.book(format!("goods of {order}"), 1);
    Ok(())
}

#[outlast::activity(retry = 10)]
async fn release(_ctx: ActivityContext, State(books): State<Books>, order: String) -> Result<(), String> {
    books.cancel(&format!("goods of {order}"));
    Ok(())
}

#[outlast::activity(retry = 3)]
async fn charge(
    _ctx: ActivityContext,
    State(books): State<Books>,
    order: String,
    cents: i64,
) -> Result<(), String> {
    books.book(format!("money of {order}"), cents);
    Ok(())
}

#[outlast::activity(retry = 10)]
async fn refund(_ctx: ActivityContext, State(books): State<Books>, order: String) -> Result<(), String> {
    books.cancel(&format!("money of {order}"));
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
    let module = outlast::module![reserve, release, charge, refund, order];
    Test::<order>::new(module).world(Books::default, Books::all)
}

#[test]
fn an_approved_order_keeps_its_bookings_at_every_crash() {
    let test = shop().send_at(days(2), Approval { yes: true });
    let run = test.run(order::input("o-1".into(), 700));
    assert_eq!(run.output(), "o-1 is on its way");
    assert_eq!(run.observed(), [r#"{"goods of o-1": 1, "money of o-1": 700}"#]);
    test.crash_everywhere(order::input("o-1".into(), 700)).holds();
}

#[test]
fn a_refused_order_leaves_no_booking_at_every_crash() {
    let test = shop().send_at(days(2), Approval { yes: false });
    let run = test.run(order::input("o-1".into(), 700));
    assert_eq!(run.failure(), "refused");
    assert_eq!(run.observed(), ["{}"]);
    test.crash_everywhere(order::input("o-1".into(), 700)).holds();
}

#[test]
fn a_failed_step_leaves_nothing() {
    shop().send_at(days(2), Approval { yes: true }).fail_everywhere(order::input("o-1".into(), 700)).holds();
}

#[test]
fn a_cancelled_order_leaves_no_booking_at_every_crash() {
    let test = shop().cancel_at(days(1), "the customer left");
    let run = test.run(order::input("o-1".into(), 700));
    assert_eq!(run.result(), &Err(CallError::Cancelled("the customer left".into())));
    assert_eq!(run.observed(), ["{}"]);
    test.crash_everywhere(order::input("o-1".into(), 700)).holds();
}

#[test]
fn an_order_that_is_cancelled_at_any_moment_leaves_nothing() {
    let test = shop().send_at(days(2), Approval { yes: true });
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
        .world(Books::default, Books::all)
        .cancel_at(std::time::Duration::ZERO, "changed my mind")
        .run(5);
    assert_eq!(run.result(), &Err(CallError::Cancelled("changed my mind".into())));
    assert_eq!(run.observed(), [r#"{"money of from": -5, "money of to": 5}"#]);
}
