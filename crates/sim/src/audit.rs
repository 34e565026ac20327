//! The records that the audit of the store must have.
//!
//! A reset or fork has its record in its own transaction. The other changes are recorded by the caller after the answer of the store: it
//! owes one record. The record of a paused orchestration covers the instances that runtimes hold, and release again, because of it. A
//! caller that crashes, or that gets no answer, may leave its record out, and never records a change twice. A pause whose record failed
//! is recorded by a call that repeats the pause.

use outlast_provider::{AuditEntry, AuditRecord};
use std::collections::BTreeMap;

/// A caller records its change in the same step in which it gets the answer. This is time for calls that wait for another one.
const OVERDUE_MS: u64 = 1_000;

/// A change that its caller must record.
#[derive(Debug, Clone)]
pub(crate) struct Owed {
    /// The node of the caller, if it is one.
    pub(crate) node: Option<usize>,
    /// The disturbances of the node when it was answered.
    pub(crate) disturbances: u64,
    pub(crate) at_ms: u64,
    /// The actions that record the change.
    pub(crate) actions: &'static [&'static str],
    pub(crate) target: String,
    /// Actor and reason, if the change has them.
    pub(crate) by: Option<(String, String)>,
}

impl Owed {
    fn is_pause(&self) -> bool {
        self.actions.iter().any(|action| action.ends_with("pause"))
    }

    fn is_recorded_by(&self, node: Option<usize>, entry: &AuditEntry) -> bool {
        let by = |(actor, reason): &(String, String)| *actor == entry.actor && *reason == entry.reason;
        self.node == node
            && self.target == entry.target
            && self.actions.contains(&entry.action.as_str())
            && self.by.as_ref().is_none_or(by)
    }
}

/// The answer to a call that writes a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Stored,
    NotStored,
    /// The call failed after a statement that may have been the commit.
    InDoubt,
}

#[derive(Default)]
struct Count {
    stored: u64,
    in_doubt: u64,
}

/// The changes and records of a world.
#[derive(Default)]
pub(crate) struct Audit {
    counts: BTreeMap<String, Count>,
    owed: Vec<Owed>,
    /// Pauses that a call which repeats them may record.
    unrecorded: Vec<Owed>,
}

fn text(entry: &AuditEntry) -> String {
    let AuditEntry { actor, action, target, reason, request, result } = entry;
    format!("{action} of '{target}' by {actor} because of '{reason}' for {request:?}: {result}")
}

impl Audit {
    /// The store has made a change whose caller was answered and must record it.
    pub(crate) fn owes(&mut self, owed: Owed) {
        self.owed.push(owed);
    }

    /// The store may have made a pause whose caller got no answer, or no answer to its record.
    pub(crate) fn may_record(&mut self, pause: Owed) {
        self.unrecorded.push(pause);
    }

    /// A call has written a record, perhaps within a change.
    pub(crate) fn written(&mut self, entry: &AuditEntry, answer: Answer) {
        let count = self.counts.entry(text(entry)).or_default();
        match answer {
            Answer::Stored => count.stored += 1,
            Answer::InDoubt => count.in_doubt += 1,
            Answer::NotStored => {}
        }
    }

    /// A caller has tried to record a change. Fails if it made no such change.
    pub(crate) fn appended(
        &mut self,
        node: Option<usize>,
        entry: &AuditEntry,
        answer: Answer,
    ) -> Result<(), String> {
        self.written(entry, answer);
        let recorded = |owed: &Owed| owed.is_recorded_by(node, entry);
        let change = match self.owed.iter().position(recorded) {
            Some(at) => Some(self.owed.remove(at)),
            None => self.unrecorded.iter().position(recorded).map(|at| self.unrecorded.remove(at)),
        };
        let Some(change) = change else {
            return Err(format!("I16: a change is recorded that was not made: {}", text(entry)));
        };
        if answer != Answer::Stored && change.is_pause() {
            self.may_record(change);
        }
        Ok(())
    }

    /// Number of certain records of a change.
    pub(crate) fn stored(&self, entry: &AuditEntry) -> u64 {
        self.counts.get(&text(entry)).map_or(0, |count| count.stored)
    }

    /// Compares the records of the store, newest first, with those that were written.
    pub(crate) fn check(&self, records: &[AuditRecord]) -> Result<(), String> {
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        for record in records {
            *found.entry(text(&record.entry)).or_default() += 1;
        }
        if !records.is_sorted_by(|newer, older| newer.id > older.id) {
            return Err("I16: the numbers of the audit do not grow".to_string());
        }
        if let Some((unknown, _)) = found.iter().find(|(text, _)| !self.counts.contains_key(*text)) {
            return Err(format!("I16: the audit has a record that no call wrote: {unknown}"));
        }
        for (text, Count { stored, in_doubt }) in &self.counts {
            let count = found.get(text).copied().unwrap_or(0);
            if !(*stored..=stored + in_doubt).contains(&count) {
                return Err(format!(
                    "I16: {stored} records were stored, {in_doubt} are in doubt, and the audit has {count}: {text}"
                ));
            }
        }
        Ok(())
    }

    /// Fails if a caller that goes on has not recorded its change. `goes_on` says so of a node and its disturbances at the answer.
    pub(crate) fn overdue(&self, now_ms: u64, goes_on: impl Fn(usize, u64) -> bool) -> Result<(), String> {
        let overdue = self.owed.iter().find(|owed| {
            now_ms > owed.at_ms + OVERDUE_MS && owed.node.is_none_or(|node| goes_on(node, owed.disturbances))
        });
        match overdue {
            None => Ok(()),
            Some(Owed { actions, target, at_ms, .. }) => Err(format!(
                "I16: a change of '{target}' at {at_ms} ms is not recorded ({})",
                actions.join(" or ")
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(action: &str) -> AuditEntry {
        let of = |text: &str| text.to_string();
        AuditEntry {
            actor: of("sim"),
            action: of(action),
            target: of("i"),
            reason: of("why"),
            ..AuditEntry::default()
        }
    }

    fn record(id: u64, action: &str) -> AuditRecord {
        AuditRecord { id, at_ms: 0, entry: entry(action) }
    }

    fn owed(node: Option<usize>) -> Owed {
        let by = Some(("sim".to_string(), "why".to_string()));
        Owed { node, disturbances: 3, at_ms: 10, actions: &["pause"], target: "i".to_string(), by }
    }

    #[test]
    fn lost_doubled_and_unknown_records_are_found() {
        let mut audit = Audit::default();
        audit.written(&entry("reset"), Answer::Stored);
        audit.written(&entry("fork"), Answer::NotStored);
        assert_eq!(audit.check(&[record(1, "reset")]), Ok(()));
        for found in [
            vec![],
            vec![record(2, "reset"), record(1, "reset")],
            vec![record(2, "pause"), record(1, "reset")],
            vec![record(2, "fork"), record(1, "reset")],
        ] {
            assert!(audit.check(&found).is_err(), "{found:?}");
        }
    }

    #[test]
    fn record_in_doubt_may_be_stored_once() {
        let mut audit = Audit::default();
        audit.written(&entry("reset"), Answer::InDoubt);
        assert_eq!(audit.check(&[]), Ok(()));
        assert_eq!(audit.check(&[record(1, "reset")]), Ok(()));
        assert!(audit.check(&[record(2, "reset"), record(1, "reset")]).is_err());
        audit.written(&entry("reset"), Answer::Stored);
        assert!(audit.check(&[]).is_err());
        assert!(audit.check(&[record(1, "reset"), record(1, "reset")]).is_err(), "a number repeats");
    }

    #[test]
    fn change_without_a_record_is_overdue_unless_its_node_was_disturbed() {
        let mut audit = Audit::default();
        audit.owes(owed(None));
        assert_eq!(audit.overdue(10 + OVERDUE_MS, |_, _| true), Ok(()));
        assert!(audit.overdue(11 + OVERDUE_MS, |_, _| false).is_err());
        assert_eq!(audit.appended(None, &entry("pause"), Answer::Stored), Ok(()));
        assert_eq!(audit.overdue(u64::MAX, |_, _| true), Ok(()));
        audit.owes(owed(Some(1)));
        assert_eq!(audit.overdue(u64::MAX, |node, at| (node, at) != (1, 3)), Ok(()));
        assert!(audit.overdue(u64::MAX, |node, at| (node, at) == (1, 3)).is_err());
    }

    #[test]
    fn record_without_a_change_fails() {
        let mut audit = Audit::default();
        audit.owes(owed(Some(1)));
        for (node, action) in [(None, "pause"), (Some(2), "pause"), (Some(1), "resume")] {
            assert!(audit.appended(node, &entry(action), Answer::Stored).is_err(), "{node:?} {action}");
        }
        assert_eq!(audit.appended(Some(1), &entry("pause"), Answer::Stored), Ok(()));
        assert!(
            audit.appended(Some(1), &entry("pause"), Answer::Stored).is_err(),
            "the change is recorded twice"
        );
        assert_eq!(audit.stored(&entry("pause")), 4);
    }
}
