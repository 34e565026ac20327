//! Webhooks of another system, which sends each of them at least once and in any order.

// guide: program
use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
#[cfg(test)]
use outlast::testing::{Test, minutes};
use outlast::time::days;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

#[derive(Clone, Serialize, Deserialize, outlast::Message)]
struct Event {
    id: String,
    customer: String,
    cents: i64,
}

#[outlast::activity(retry = 10)]
async fn book(_ctx: ActivityContext, event: Event) -> Result<(), String> {
    Err(format!("{} is a mock in the tests", event.id))
}

/// Call this from the HTTP handler, and answer 200 when it has returned: the event is then stored.
async fn intake(client: &Client, event: &Event) -> Result<(), InstanceError> {
    let inbox = inbox::start(client, Inbox::default()).id(format!("inbox-{}", event.customer));
    inbox.or_existing().with(event).await.map(drop)
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Inbox {
    seen: BTreeSet<String>,
    cents: i64,
}

const BALANCE: Key<i64> = Key::new("balance");

/// The events of one customer, one after the other, each once.
#[outlast::orchestration(accepts(Event))]
async fn inbox(ctx: OrchestrationContext, mut inbox: Inbox) -> Result<Inbox, String> {
    for _ in 0..100 {
        // An inbox that is idle for a month ends. The next event of its customer starts a new one.
        let Some(event) = ctx.next::<Event>().within(days(30)).await? else { return Ok(inbox) };
        if inbox.seen.insert(event.id.clone()) {
            book::call(&ctx, event.clone()).await?;
            inbox.cents += event.cents;
            ctx.set(BALANCE, &inbox.cents);
        }
    }
    inbox::continue_as_new(&ctx, inbox).await
}

fn event(id: &str, cents: i64) -> Event {
    Event { id: id.into(), customer: "ada".into(), cents }
}

#[test]
fn an_event_that_comes_twice_is_booked_once() {
    let run = Test::<inbox>::new(outlast::module![inbox])
        .mock::<book>(|_| Ok(()))
        .send_at(minutes(1), event("e-1", 500))
        .send_at(minutes(2), event("e-1", 500))
        .send_at(minutes(3), event("e-2", -200))
        .run(Inbox::default());
    assert_eq!(run.output().cents, 300);
    run.calls::<book>().times(2);
}

#[tokio::test]
async fn the_first_event_of_a_customer_starts_the_inbox() -> Result<(), Box<dyn std::error::Error>> {
    let store = Arc::new(MemoryProvider::new());
    let client = Client::new(store);
    for event in [event("e-1", 500), event("e-2", -200), event("e-1", 500)] {
        intake(&client, &event).await?;
    }
    assert_eq!(client.pending_work("inbox-ada", 10).await?.map(|work| work.message_count), Some(4));
    Ok(())
}
// guide: end
