//! Stored histories, written by hand.

use outlast_model::{Event, EventKind};

/// An event before it has an id.
pub(crate) struct Stored(Option<u64>, EventKind);

/// A history with ids from 1 in the given order, under a stamp.
pub(crate) fn history(stamp: &str, events: Vec<Stored>) -> Vec<Event> {
    let numbered = events.into_iter().zip(1..);
    let event = |(Stored(source, kind), id): (Stored, u64)| {
        let mut event = Event::at(500, id, "i", 1, source, kind);
        event.duroxide_version = stamp.to_string();
        event
    };
    numbered.map(event).collect()
}

/// An event for which this file has no other function.
pub(crate) fn plain(kind: EventKind) -> Stored {
    Stored(None, kind)
}

pub(crate) fn started(input: &str) -> Stored {
    plain(EventKind::OrchestrationStarted {
        name: "Main".to_string(),
        version: "1.0.0".to_string(),
        input: input.to_string(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    })
}

pub(crate) fn activity(name: &str, input: &str) -> Stored {
    let (name, input) = (name.to_string(), input.to_string());
    plain(EventKind::ActivityScheduled { name, input, session_id: None, tag: None })
}

pub(crate) fn completed(source: u64, result: &str) -> Stored {
    Stored(Some(source), EventKind::ActivityCompleted { result: result.to_string() })
}

pub(crate) fn activity_dropped(source: u64) -> Stored {
    Stored(Some(source), EventKind::ActivityCancelRequested { reason: dropped() })
}

pub(crate) fn activity_ended(source: u64) -> Stored {
    let reason = "orchestration_terminal_failed".to_string();
    Stored(Some(source), EventKind::ActivityCancelRequested { reason })
}

pub(crate) fn timer(fire_at_ms: u64) -> Stored {
    plain(EventKind::TimerCreated { fire_at_ms })
}

pub(crate) fn timer_fired(source: u64) -> Stored {
    Stored(Some(source), EventKind::TimerFired { fire_at_ms: 0 })
}

pub(crate) fn child(name: &str, instance: &str, input: &str) -> Stored {
    plain(EventKind::SubOrchestrationScheduled {
        name: name.to_string(),
        instance: instance.to_string(),
        input: input.to_string(),
    })
}

pub(crate) fn child_dropped(source: u64) -> Stored {
    Stored(Some(source), EventKind::SubOrchestrationCancelRequested { reason: dropped() })
}

pub(crate) fn chained(name: &str, instance: &str, input: &str) -> Stored {
    plain(EventKind::OrchestrationChained {
        name: name.to_string(),
        instance: instance.to_string(),
        input: input.to_string(),
    })
}

pub(crate) fn subscribed(name: &str) -> Stored {
    plain(EventKind::ExternalSubscribed { name: name.to_string() })
}

pub(crate) fn raised(name: &str, data: &str) -> Stored {
    plain(EventKind::ExternalEvent { name: name.to_string(), data: data.to_string() })
}

pub(crate) fn wait_dropped(source: u64) -> Stored {
    Stored(Some(source), EventKind::ExternalSubscribedCancelled { reason: dropped() })
}

pub(crate) fn dequeued(queue: &str) -> Stored {
    plain(EventKind::QueueSubscribed { name: queue.to_string() })
}

pub(crate) fn dequeue_dropped(source: u64) -> Stored {
    Stored(Some(source), EventKind::QueueSubscriptionCancelled { reason: dropped() })
}

pub(crate) fn status(text: &str) -> Stored {
    plain(EventKind::CustomStatusUpdated { status: Some(text.to_string()) })
}

pub(crate) fn key_set(key: &str, value: &str, last_updated_at_ms: u64) -> Stored {
    plain(EventKind::KeyValueSet { key: key.to_string(), value: value.to_string(), last_updated_at_ms })
}

pub(crate) fn key_cleared(key: &str) -> Stored {
    plain(EventKind::KeyValueCleared { key: key.to_string() })
}

fn dropped() -> String {
    "dropped_future".to_string()
}
