//! The programs of docs/guide/children.md.

// guide: program
use outlast::prelude::*;
#[cfg(test)]
use outlast::testing::Test;
use outlast::time::days;

#[outlast::activity]
async fn send_parcel(_ctx: ActivityContext, item: String) -> Result<String, String> {
    if item == "piano" { Err("too heavy".to_string()) } else { Ok(format!("parcel with {item}")) }
}

#[outlast::activity]
async fn ask_opinion(_ctx: ActivityContext, customer: String) -> Result<(), String> {
    println!("how was it, {customer}?");
    Ok(())
}

/// Each item has an instance and a history of its own.
#[outlast::orchestration]
async fn ship(ctx: OrchestrationContext, item: String) -> Result<String, String> {
    ctx.sleep(days(1)).await;
    Ok(send_parcel::call(&ctx, item).await?)
}

#[outlast::orchestration]
async fn survey(ctx: OrchestrationContext, customer: String) -> Result<(), String> {
    ctx.sleep(days(14)).await;
    Ok(ask_opinion::call(&ctx, customer).await?)
}

#[outlast::orchestration]
async fn order(ctx: OrchestrationContext, customer: String, items: Vec<String>) -> Result<usize, String> {
    let children: Vec<_> = items.into_iter().map(|item| ship::child(&ctx, item)).collect();
    let mut sent = 0;
    for shipped in ctx.join_all(children).await {
        match shipped {
            Ok(_parcel) => sent += 1,
            Err(error) => ctx.trace_warn(format!("an item stays here: {error}")),
        }
    }
    // Nothing waits for the survey: it goes on after the order.
    survey::detached(&ctx, customer).id(format!("survey-of-{}", ctx.instance_id()))?;
    Ok(sent)
}

#[test]
fn an_order_ships_its_items_at_the_same_time() {
    let module = outlast::module![order, ship, survey, send_parcel, ask_opinion];
    let items = vec!["lamp".to_string(), "piano".to_string(), "rug".to_string()];
    let run = Test::<order>::new(module).settle(days(20)).run(order::input("Ada".into(), items));
    assert_eq!((run.output(), run.elapsed()), (&2, days(1)));
    assert_eq!(run.instances::<ship>().len(), 3);
    assert_eq!(run.instances::<survey>(), ["survey-of-order-1"]);
    run.calls::<ask_opinion>().once();
}
// guide: end

// guide: again
/// Renews a subscription every 30 days, twelve times. Each round has a history of its own.
#[outlast::orchestration]
async fn subscription(ctx: OrchestrationContext, round: u32) -> Result<u32, String> {
    ctx.sleep(days(30)).await;
    send_parcel::call(&ctx, format!("issue {round}")).await?;
    if round == 12 {
        return Ok(round);
    }
    subscription::continue_as_new(&ctx, round + 1).await
}
// guide: end

#[test]
fn a_subscription_has_a_short_history() {
    let run = Test::<subscription>::new(outlast::module![subscription, send_parcel]).run(1);
    assert_eq!((run.output(), run.elapsed()), (&12, days(360)));
    assert_eq!(run.history_of(run.id()).len(), 12);
    assert!(run.history().len() < 10);
}
