//! One recorded execution, replayed against the present code.

use crate::cold::Build;
use crate::story;
use outlast_model::{ConfigErrorKind, ErrorDetails, Event, EventKind};
use outlast_provider::KvEntry;
use std::collections::HashMap;
use std::fmt;

/// A recorded execution that the present code does not repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    /// The file or store that holds the history.
    pub source: String,
    /// The instance.
    pub instance: String,
    /// The execution.
    pub execution_id: u64,
    /// The first event that does not fit; 0 if there is no code for the history.
    pub event_id: u64,
    /// The event in words.
    pub recorded: String,
    /// The decision of the present code instead, with its place in the source where it is known.
    pub now: String,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, instance, execution_id, event_id, recorded, now } = self;
        write!(
            f,
            "{source}: instance '{instance}' execution {execution_id}: event {event_id} is `{recorded}`, but now {now}"
        )
    }
}

/// A recorded execution.
pub(crate) struct Recorded<'a> {
    pub(crate) source: &'a str,
    pub(crate) instance: &'a str,
    pub(crate) execution_id: u64,
    pub(crate) history: &'a [Event],
    /// The keys at the end of the previous execution.
    pub(crate) kv: HashMap<String, KvEntry>,
}

impl Recorded<'_> {
    /// Replays the history, and compares the decisions at its end with those that the code makes now.
    pub(crate) fn check(self, build: &Build) -> Result<(), Divergence> {
        let (prefix, ending) = split(self.history);
        let now_ms = self.history.last().map_or(0, |event| event.timestamp_ms);
        let replay = |prefix: &[Event]| {
            let replayed =
                build.replay(self.instance, self.execution_id, prefix.to_vec(), self.kv.clone(), now_ms);
            replayed.map(|commit| commit.history_delta).ok_or_else(|| {
                self.divergence(0, "no orchestration of the module has this name and version".to_string())
            })
        };
        let mut decided = replay(prefix)?;
        // Messages of the last turn that arrived after the code had ended are events before its ending.
        let late = match ending {
            [] => 0,
            _ => prefix.iter().rev().take_while(|event| is_arrival(&event.kind)).count(),
        };
        for cut in 1..=late {
            if !decided.iter().filter_map(mismatch).any(|text| text.contains("code ended before its history"))
            {
                break;
            }
            decided = replay(&prefix[..prefix.len() - cut])?;
        }
        for event in &decided {
            if let Some(text) = mismatch(event) {
                let id = mentioned_event(text).unwrap_or(event.event_id);
                return Err(self.divergence(id, text.to_string()));
            }
        }
        // An ending that the code did not cause: poison, a limit, cancellation by an operator.
        if ending.iter().any(|event| !is_of_code(&event.kind)) {
            return Ok(());
        }
        let longest = decided.len().max(ending.len());
        let kind = |events: &[Event], at: usize| events.get(at).map(|event| event.kind.clone());
        match (0..longest).find(|at| kind(&decided, *at) != kind(ending, *at)) {
            None => Ok(()),
            Some(at) => {
                let now = decided.get(at).map_or("the code makes no decision".to_string(), |event| {
                    format!("the code decides `{}`", story::words(event, self.history))
                });
                let id = ending.get(at).or(decided.get(at)).map_or(0, |event| event.event_id);
                Err(self.divergence(id, now))
            }
        }
    }

    fn divergence(&self, event_id: u64, now: String) -> Divergence {
        let event = self.history.iter().find(|event| event.event_id == event_id);
        let recorded = match event {
            Some(event) => story::words(event, self.history),
            None if event_id == 0 => story::words_of_first(self.history),
            None => "not there: the instance waits".to_string(),
        };
        Divergence {
            source: self.source.to_string(),
            instance: self.instance.to_string(),
            execution_id: self.execution_id,
            event_id,
            recorded,
            now,
        }
    }
}

/// The history without its ending, and the ending: the last event, and the notes of dropped operations before it. The engine writes
/// these when the code has returned.
fn split(history: &[Event]) -> (&[Event], &[Event]) {
    let Some(last) = history.iter().position(Event::is_terminal) else { return (history, &[]) };
    let notes = history[..last].iter().rev().take_while(|event| is_note(&event.kind)).count();
    (&history[..last - notes], &history[last - notes..=last])
}

fn is_note(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::ActivityCancelRequested { .. }
            | EventKind::SubOrchestrationCancelRequested { .. }
            | EventKind::ExternalSubscribedCancelled { .. }
            | EventKind::QueueSubscriptionCancelled { .. }
    )
}

/// Whether the event is a message that arrived.
fn is_arrival(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::ActivityCompleted { .. }
            | EventKind::ActivityFailed { .. }
            | EventKind::TimerFired { .. }
            | EventKind::ExternalEvent { .. }
            | EventKind::SubOrchestrationCompleted { .. }
            | EventKind::SubOrchestrationFailed { .. }
            | EventKind::QueueEventDelivered { .. }
    )
}

fn is_of_code(kind: &EventKind) -> bool {
    match kind {
        EventKind::OrchestrationFailed { details } => matches!(details, ErrorDetails::Application { .. }),
        _ => true,
    }
}

/// The text of a replay error.
fn mismatch(event: &Event) -> Option<&str> {
    match &event.kind {
        EventKind::OrchestrationFailed {
            details:
                ErrorDetails::Configuration {
                    kind: ConfigErrorKind::Nondeterminism, message: Some(message), ..
                },
        } => Some(message),
        _ => None,
    }
}

/// The id in `event 7 of instance ..`, which replay errors begin with.
fn mentioned_event(text: &str) -> Option<u64> {
    let (_, after) = text.split_once("event ")?;
    after.split(' ').next()?.parse().ok()
}

/// The keys after an execution that began with `kv`.
pub(crate) fn keys_after(mut kv: HashMap<String, KvEntry>, history: &[Event]) -> HashMap<String, KvEntry> {
    for event in history {
        match &event.kind {
            EventKind::KeyValueSet { key, value, last_updated_at_ms } => {
                let entry = KvEntry { value: value.clone(), last_updated_at_ms: *last_updated_at_ms };
                kv.insert(key.clone(), entry);
            }
            EventKind::KeyValueCleared { key } => drop(kv.remove(key)),
            EventKind::KeyValuesCleared => kv.retain(|key, _| key.starts_with("__outlast:")),
            _ => {}
        }
    }
    kv
}
