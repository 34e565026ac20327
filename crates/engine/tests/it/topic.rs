//! Events with a topic, which play a newer contract in tests.

use crate::kit::*;
use outlast_model::{EventKind, WorkItem};

fn raise2(topic: &str, data: &str) -> Message {
    let text = |text: &str| text.to_string();
    Message::Item(WorkItem::ExternalRaised2 {
        instance: text("i"),
        name: text("s"),
        topic: text(topic),
        data: text(data),
    })
}

#[test]
fn event_resolves_only_a_wait_of_its_name_and_topic() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let (event, plain) = ctx.join2(ctx.schedule_wait2("s", "a"), ctx.schedule_wait("s")).await;
        Ok(format!("{event} {plain}"))
    });
    driver.give([raise2("a", "before any wait: not even recorded")]);
    assert_eq!(driver.history.len(), 3);
    driver.give([raise2("b", "another topic")]);
    assert_eq!(driver.history.len(), 3);
    driver.give([raise("s", "plain")]);
    // The stored wait matches the wait of the code.
    driver.forget();
    driver.give([raise2("a", "event")]);
    assert!(format!("{:?}", driver.history.last()).contains("event plain"));
}

#[test]
fn another_topic_is_another_wait() {
    let recorded = plain(EventKind::ExternalSubscribed2 { name: "s".to_string(), topic: "a".to_string() });
    let mut driver = InstanceDriver::new(|ctx, _| async move { Ok(ctx.schedule_wait2("s", "b").await) })
        .stored(history("0.1.32", vec![started("in"), recorded]));
    driver.give([]);
    assert!(driver.error().contains("schedule mismatch: event 2"), "{}", driver.error());
}

#[test]
fn activity_outcome_for_a_wait_fails_the_instance() {
    let mut driver = InstanceDriver::new(|ctx, _| async move { Ok(ctx.schedule_wait2("s", "a").await) });
    driver.give([]);
    driver.give([done(2, "")]);
    let fragment = "completion kind mismatch for id=2, expected 'wait', got 'activity'";
    assert!(driver.error().contains(fragment), "{}", driver.error());
}
