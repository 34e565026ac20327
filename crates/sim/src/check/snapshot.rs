//! The rows of a store at one time, parsed from its dump. Every store with a dump can be checked.

use outlast_model::{Event, ExecutionStatus, WorkItem, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The rows of a store.
#[derive(Default)]
pub(crate) struct Snapshot {
    /// The current execution of each instance.
    pub(crate) instances: BTreeMap<String, u64>,
    /// Status by instance and execution.
    pub(crate) executions: BTreeMap<(String, u64), String>,
    pub(crate) histories: BTreeMap<(String, u64), Arc<Vec<Event>>>,
    pub(crate) messages: Vec<MessageRow>,
    pub(crate) activities: Vec<ActivityRow>,
    /// When the lease of an instance ends.
    pub(crate) leases: BTreeMap<String, u64>,
    pub(crate) sessions: Vec<String>,
    /// Instances that are held.
    pub(crate) holds: BTreeSet<String>,
}

pub(crate) struct MessageRow {
    pub(crate) item: WorkItem,
    /// The item as it is stored.
    pub(crate) text: String,
    pub(crate) visible_at: u64,
    pub(crate) locked_until: u64,
    pub(crate) attempts: u32,
}

pub(crate) struct ActivityRow {
    pub(crate) instance: String,
    pub(crate) execution_id: u64,
    pub(crate) id: u64,
    pub(crate) visible_at: u64,
    pub(crate) locked_until: u64,
    pub(crate) attempts: u32,
    pub(crate) has_session: bool,
}

impl Snapshot {
    pub(crate) fn history(&self, instance: &str, execution_id: u64) -> &[Event] {
        self.histories.get(&(instance.to_string(), execution_id)).map_or(&[], |history| history.as_slice())
    }

    /// Whether the instance has completed or failed.
    pub(crate) fn has_ended(&self, instance: &str) -> bool {
        let current = self.instances.get(instance);
        let status = current.and_then(|current| self.executions.get(&(instance.to_string(), *current)));
        status
            .and_then(|status| ExecutionStatus::from_text(status))
            .is_some_and(ExecutionStatus::ends_instance)
    }
}

/// The events of a history in earlier dumps, as text and decoded.
#[derive(Default)]
struct KnownHistory {
    texts: Vec<String>,
    events: Arc<Vec<Event>>,
}

/// I2: reads one dump after the other. Events of an earlier dump must be in every later one.
#[derive(Default)]
pub(crate) struct Recorder {
    known_histories: BTreeMap<(String, u64), KnownHistory>,
}

impl Recorder {
    pub(crate) fn record(&mut self, dump: &[String]) -> Result<Snapshot, String> {
        let mut snapshot = Snapshot::default();
        let mut found: BTreeMap<(String, u64), Vec<&str>> = BTreeMap::new();
        for line in dump {
            let unreadable = || format!("the dump has a line that cannot be read: {line}");
            let (table, row) = line.split_once(' ').ok_or_else(unreadable)?;
            match table {
                "history" => {
                    let (key, text) = history_row(row).ok_or_else(unreadable)?;
                    found.entry(key).or_default().push(text);
                }
                "contradiction" => return Err(format!("D1: {row}")),
                _ => snapshot.read(table, row).ok_or_else(unreadable)?,
            }
        }
        for key in self.known_histories.keys() {
            if !found.contains_key(key) {
                return Err(format!("I2: the history of '{}', execution {}, is gone", key.0, key.1));
            }
        }
        for (key, texts) in found {
            let events = self.append_new_events(&key, &texts)?;
            snapshot.histories.insert(key, events);
        }
        Ok(snapshot)
    }

    /// Decodes the events that are new since the last dump. Fails if an earlier event changed.
    fn append_new_events(&mut self, key: &(String, u64), texts: &[&str]) -> Result<Arc<Vec<Event>>, String> {
        let KnownHistory { texts: known_texts, events } =
            self.known_histories.entry(key.clone()).or_default();
        let prefix = texts.get(..known_texts.len());
        if prefix.is_none_or(|prefix| prefix != known_texts.as_slice()) {
            return Err(format!("I2: the history of '{}', execution {}, was rewritten", key.0, key.1));
        }
        for text in &texts[known_texts.len()..] {
            let event = json::decode_event(text).map_err(|error| format!("I2: '{text}': {error}"))?;
            Arc::make_mut(events).push(event);
            known_texts.push(text.to_string());
        }
        Ok(Arc::clone(events))
    }
}

/// Instance and execution, and the event as text.
fn history_row(row: &str) -> Option<((String, u64), &str)> {
    let mut parts = row.splitn(4, ' ');
    let key = (parts.next()?.to_string(), parts.next()?.parse().ok()?);
    Some((key, parts.nth(1)?))
}

impl Snapshot {
    fn read(&mut self, table: &str, row: &str) -> Option<()> {
        let words: Vec<&str> = row.splitn(7, ' ').collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
        let instance = words.first()?.to_string();
        match table {
            "instance" => drop(self.instances.insert(instance, number(3)?)),
            "execution" => drop(self.executions.insert((instance, number(1)?), words.get(2)?.to_string())),
            "session" => self.sessions.push(row.to_string()),
            "hold" => drop(self.holds.insert(instance)),
            "lease" => drop(self.leases.insert(instance, number(1)?)),
            "message" => {
                let text = words.get(6)?.to_string();
                let item = json::decode_work_item(&text).ok()?;
                let attempts = u32::try_from(number(5)?).ok()?;
                let locked_until = if *words.get(4)? == "true" { number(3)? } else { 0 };
                self.messages.push(MessageRow { item, text, visible_at: number(2)?, locked_until, attempts });
            }
            "work" => {
                let rest = words.get(6)?;
                let attempts = rest.split(' ').next()?.parse().ok()?;
                let has_session = rest.contains("\"session_id\":\"");
                self.activities.push(ActivityRow {
                    instance,
                    execution_id: number(1)?,
                    id: number(2)?,
                    visible_at: number(3)?,
                    locked_until: number(5)?,
                    attempts,
                    has_session,
                });
            }
            _ => {}
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contradiction_of_a_dump_breaks_d1() {
        let dump = ["contradiction i 1 2 an activity half leased".to_string()];
        let failure = Recorder::default().record(&dump).err();
        assert_eq!(failure.as_deref(), Some("D1: i 1 2 an activity half leased"));
    }
}
