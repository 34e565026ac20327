//! A recorded execution that the present code does not repeat, in words.

use crate::cold::Build;
use crate::story;
use outlast_model::{Event, EventKind};
use outlast_provider::KvEntry;
use outlast_runtime::check::{Cause, Misfit, Recorded};
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

/// Replays an execution of a file, store or run.
pub(crate) fn check(build: &Build, source: &str, recorded: Recorded<'_>) -> Result<(), Divergence> {
    let (instance, execution_id, history) = (recorded.instance, recorded.execution_id, recorded.history);
    let Some(Misfit { event_id, cause, .. }) = recorded.check(build, None).misfit else { return Ok(()) };
    let event = history.iter().find(|event| event.event_id == event_id);
    let recorded = match event {
        Some(event) => story::words(event, history),
        None if event_id == 0 => story::words_of_first(history),
        None => "not there: the instance waits".to_string(),
    };
    let now = match cause {
        Cause::NoCode => "no orchestration of the module has this name and version".to_string(),
        Cause::Panics => "the code panics".to_string(),
        Cause::Undecodable => "the input does not decode as the type of the code".to_string(),
        Cause::Mismatch(text) => text,
        Cause::Decides(event) => format!("the code decides `{}`", story::words(&event, history)),
        Cause::DecidesNothing => "the code makes no decision".to_string(),
    };
    Err(Divergence {
        source: source.to_string(),
        instance: instance.to_string(),
        execution_id,
        event_id,
        recorded,
        now,
    })
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
