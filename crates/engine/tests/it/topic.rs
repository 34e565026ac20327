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
    let mut world = World::new(|ctx, _| async move {
        let (event, plain) = ctx.join2(ctx.schedule_wait2("s", "a"), ctx.schedule_wait("s")).await;
        Ok(format!("{event} {plain}"))
    });
    world.give([raise2("a", "before any wait: not even recorded")]);
    assert_eq!(world.history.len(), 3);
    world.give([raise2("b", "another topic")]);
    assert_eq!(world.history.len(), 3);
    world.give([raise("s", "plain")]);
    // The stored wait matches the wait of the code.
    world.forget();
    world.give([raise2("a", "event")]);
    assert!(format!("{:?}", world.history.last()).contains("event plain"));
}

#[test]
fn another_topic_is_another_wait() {
    let recorded = plain(EventKind::ExternalSubscribed2 { name: "s".to_string(), topic: "a".to_string() });
    let mut world = World::new(|ctx, _| async move { Ok(ctx.schedule_wait2("s", "b").await) })
        .stored(history("0.1.32", vec![started("in"), recorded]));
    world.give([]);
    assert!(world.error().contains("schedule mismatch: event 2"), "{}", world.error());
}

#[test]
fn activity_outcome_for_a_wait_fails_the_instance() {
    let mut world = World::new(|ctx, _| async move { Ok(ctx.schedule_wait2("s", "a").await) });
    world.give([]);
    world.give([done(2, "")]);
    let fragment = "completion kind mismatch for id=2, expected 'wait', got 'activity'";
    assert!(world.error().contains(fragment), "{}", world.error());
}
