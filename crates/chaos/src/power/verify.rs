//! Compares the stored rows with the answers that callers received.

use super::call_log::{CallLog, CallState, InstanceCalls};
use super::stored::Rows;
use outlast_model::{Event, EventKind, ExecutionStatus, WorkItem};
use std::collections::BTreeMap;

/// Findings of one comparison.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Acknowledged calls that are not stored.
    pub(crate) lost: Vec<String>,
    /// Partly stored, duplicated or unknown rows: no setting excuses them.
    pub(crate) broken: Vec<String>,
}

/// Compares every instance. Afterwards, every stored call counts as acknowledged and every lost call is forgotten, so
/// that the next cut is checked on its own.
pub(crate) fn verify(call_log: &CallLog, stored: &BTreeMap<String, Rows>) -> Findings {
    let mut findings = Findings::default();
    let mut instances = call_log.instances();
    for (instance, calls) in instances.iter_mut() {
        let nothing = Rows::default();
        let rows = stored.get(instance).unwrap_or(&nothing);
        let mut check = InstanceCheck { instance, rows, findings: &mut findings };
        if check.is_deleted(calls) {
            *calls = InstanceCalls::default();
            continue;
        }
        check.history(calls);
        check.messages(calls);
        check.activities(calls);
        check.execution();
        check.outcome(calls);
    }
    for instance in stored.keys().filter(|instance| !instances.contains_key(*instance)) {
        findings.broken.push(format!("{instance} is stored, and no client started it"));
    }
    // Deleted instances, and instances that were neither acknowledged nor stored, are forgotten.
    instances.retain(|_, calls| !calls.sent.is_empty());
    findings
}

struct InstanceCheck<'a> {
    instance: &'a str,
    rows: &'a Rows,
    findings: &'a mut Findings,
}

impl InstanceCheck<'_> {
    fn lost(&mut self, what: impl std::fmt::Display) {
        self.findings.lost.push(format!("{}: {what}", self.instance));
    }

    fn broken(&mut self, what: impl std::fmt::Display) {
        self.findings.broken.push(format!("{}: {what}", self.instance));
    }

    /// Whether the instance is deleted: all its rows are gone.
    fn is_deleted(&mut self, calls: &mut InstanceCalls) -> bool {
        let Some(state) = calls.deletion.take() else { return false };
        let is_gone = self.rows.is_empty();
        if state == CallState::Acknowledged && !is_gone {
            self.lost("its deletion");
        }
        is_gone
    }

    /// A turn is stored as a whole or not at all.
    fn history(&mut self, calls: &mut InstanceCalls) {
        let stored = self.rows.history.len();
        let mut all = calls.history.clone();
        let mut ends = [0].into_iter().chain(calls.turns.iter().copied()).collect::<Vec<_>>();
        for turn in calls.unanswered_turns.drain(..) {
            all.extend(turn);
            ends.push(all.len());
        }
        if !all.starts_with(&self.rows.history) {
            let names = |events: &[Event]| {
                events.iter().map(|event| event.kind.type_name()).collect::<Vec<_>>().join(", ")
            };
            let (found, wanted) = (names(&self.rows.history), names(&all));
            self.broken(format_args!(
                "the stored events are {found}; the committed events are {wanted}, or their contents differ"
            ));
        } else if !ends.contains(&stored) {
            self.broken(format_args!("{stored} events are stored, but turns end at {ends:?}"));
        }
        for end in calls.turns.iter().filter(|end| **end > stored) {
            self.lost(format_args!("the turn that ended with event {end}"));
        }
        calls.history.clone_from(&self.rows.history);
        ends.retain(|end| (1..=stored).contains(end));
        calls.turns = ends;
    }

    fn messages(&mut self, calls: &mut InstanceCalls) {
        for (message, state) in std::mem::take(&mut calls.sent) {
            match (self.rows.times(&message), state) {
                (0, CallState::Acknowledged) => self.lost(message.kind_name()),
                (0, CallState::Unanswered) => {}
                (1, _) => calls.sent.push((message, CallState::Acknowledged)),
                (times, _) => self.broken(format_args!("{} is stored {times} times", message.kind_name())),
            }
        }
        for message in &self.rows.messages {
            let is_known = match message {
                WorkItem::ActivityCompleted { id, .. } => calls.activities.contains_key(id),
                other => calls.sent.iter().any(|(sent, _)| sent == other),
            };
            if !is_known {
                self.broken(format_args!("{} was never sent", message.kind_name()));
            }
        }
    }

    /// From the turn that scheduled it on, an activity is either queued or its outcome is stored.
    fn activities(&mut self, calls: &mut InstanceCalls) {
        let is_activity = |kind: &EventKind| matches!(kind, EventKind::ActivityScheduled { .. });
        let history = self.rows.history.iter();
        let scheduled: Vec<u64> =
            history.filter(|event| is_activity(&event.kind)).map(|event| event.event_id).collect();
        for id in &scheduled {
            let waiting = self.rows.activities.iter().filter(|waiting| *waiting == id).count();
            let outcomes = self.rows.outcomes(*id);
            if waiting + outcomes != 1 {
                self.broken(format_args!(
                    "activity {id} is queued {waiting} times and has {outcomes} outcomes"
                ));
            }
        }
        if let Some(id) = self.rows.activities.iter().find(|id| !scheduled.contains(id)) {
            self.broken(format_args!("activity {id} is queued, and was never scheduled"));
        }
        for (id, state) in std::mem::take(&mut calls.activities) {
            match (self.rows.outcomes(id), state) {
                (0, CallState::Acknowledged) => self.lost(format_args!("the outcome of activity {id}")),
                (0, CallState::Unanswered) => {}
                _ => drop(calls.activities.insert(id, CallState::Acknowledged)),
            }
        }
    }

    /// The row of the execution agrees with its history.
    fn execution(&mut self) {
        let Some(last) = self.rows.history.last() else {
            if self.rows.execution.is_some() {
                self.broken("it has an execution without history");
            }
            return;
        };
        let status = match last.is_terminal() {
            true => ExecutionStatus::Completed,
            false => ExecutionStatus::Running,
        };
        let agrees = self.rows.execution.as_ref().is_some_and(|execution| {
            let is_numbered = last.event_id == self.rows.history.len() as u64;
            is_numbered
                && execution.last_event_id == last.event_id
                && execution.status == status.as_str()
                && execution.has_instance
        });
        if !agrees {
            self.broken(format_args!(
                "{:?} does not agree with {} events, the last of which is {}",
                self.rows.execution,
                self.rows.history.len(),
                last.kind.type_name()
            ));
        }
    }

    fn outcome(&mut self, calls: &mut InstanceCalls) {
        if let Some(client_output) = calls.client_output.take() {
            match self.rows.output() {
                Some(output) if output == client_output => calls.client_output = Some(client_output),
                Some(output) => self.broken(format_args!(
                    "a client received '{client_output}', and the store has '{output}'"
                )),
                None => self.lost("the output that a client received"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power::stored::Execution;

    fn message(data: &str) -> WorkItem {
        WorkItem::QueueMessage { instance: "a".into(), name: "notes".into(), data: data.into() }
    }

    fn completion() -> WorkItem {
        WorkItem::ActivityCompleted { instance: "a".into(), execution_id: 1, id: 1, result: "done".into() }
    }

    fn event(id: u64, source: Option<u64>, kind: EventKind) -> Event {
        Event::at(7, id, "a", 1, source, kind)
    }

    fn turns() -> [Vec<Event>; 2] {
        let (name, input) = ("Pack".to_string(), String::new());
        let scheduled = EventKind::ActivityScheduled { name, input, session_id: None, tag: None };
        let delivered = EventKind::QueueEventDelivered { name: "notes".into(), data: "one".into() };
        let completed = EventKind::ActivityCompleted { result: "done".into() };
        let ended = EventKind::OrchestrationCompleted { output: "out".into() };
        [
            vec![event(1, None, scheduled), event(2, None, delivered)],
            vec![event(3, Some(1), completed), event(4, None, ended)],
        ]
    }

    /// A log in which every call was acknowledged.
    fn call_log() -> CallLog {
        let call_log = CallLog::default();
        call_log.sending(&message("one"));
        call_log.sent(&message("one"));
        for turn in turns() {
            call_log.committing(&turn);
            call_log.committed(&turn);
        }
        call_log.activity_state(Some(&completion()), CallState::Acknowledged);
        call_log.client_output("a", "out".to_string());
        call_log
    }

    fn rows(history: Vec<Event>) -> Rows {
        let status = if history.len() == 4 { ExecutionStatus::Completed } else { ExecutionStatus::Running }
            .to_string();
        let execution = Execution { last_event_id: history.len() as u64, status, has_instance: true };
        let execution = (!history.is_empty()).then_some(execution);
        Rows { history, execution, ..Rows::default() }
    }

    fn counts(call_log: &CallLog, rows: Rows) -> (usize, usize) {
        let findings = verify(call_log, &BTreeMap::from([("a".to_string(), rows)]));
        (findings.lost.len(), findings.broken.len())
    }

    #[test]
    fn a_complete_store_has_no_findings() {
        assert_eq!(counts(&call_log(), rows(turns().concat())), (0, 0));
    }

    #[test]
    fn a_lost_call_is_reported_once() {
        let call_log = call_log();
        // Lost: the last turn, the outcome of the activity, and the output that the client received.
        let earlier = || Rows { activities: vec![1], ..rows(turns()[0].clone()) };
        assert_eq!(counts(&call_log, earlier()), (3, 0));
        assert_eq!(counts(&call_log, earlier()), (0, 0));
        // Lost now: the message and the first turn.
        assert_eq!(counts(&call_log, Rows::default()), (2, 0));
        assert!(call_log.instances().is_empty());
    }

    #[test]
    fn partly_stored_turns_are_broken() {
        let all = turns().concat();
        let cases = [
            ("a turn without its last event", rows(all[..3].to_vec())),
            ("an activity that still waits", Rows { activities: vec![1], ..rows(all.clone()) }),
            ("an outcome that is stored twice", Rows { messages: vec![completion()], ..rows(all.clone()) }),
            ("a message that is stored twice", Rows { messages: vec![message("one")], ..rows(all.clone()) }),
            ("a message that was never sent", Rows { messages: vec![message("two")], ..rows(all.clone()) }),
            ("no activity", rows(turns()[0].clone())),
            ("no execution", Rows { execution: None, ..rows(all.clone()) }),
            ("another history", rows(all.iter().rev().cloned().collect())),
        ];
        for (what, rows) in cases {
            assert!(counts(&call_log(), rows).1 > 0, "{what}");
        }
    }

    #[test]
    fn an_unanswered_turn_may_be_stored_or_not() {
        for is_stored in [true, false] {
            let call_log = CallLog::default();
            call_log.sending(&message("one"));
            call_log.committing(&turns()[0]);
            let rows = if is_stored {
                Rows { activities: vec![1], ..rows(turns()[0].clone()) }
            } else {
                Rows::default()
            };
            assert_eq!(counts(&call_log, rows), (0, 0), "stored: {is_stored}");
        }
    }

    #[test]
    fn an_acknowledged_deletion_removes_all_rows() {
        for state in [CallState::Unanswered, CallState::Acknowledged] {
            let deleted = || {
                let call_log = call_log();
                call_log.deletion_state("a", state);
                call_log
            };
            assert_eq!(counts(&deleted(), Rows::default()), (0, 0));
            let is_lost = usize::from(state == CallState::Acknowledged);
            assert_eq!(counts(&deleted(), rows(turns().concat())), (is_lost, 0));
            let leftover = Rows { messages: vec![completion()], ..Rows::default() };
            assert_ne!(counts(&deleted(), leftover), (0, 0));
        }
    }

    #[test]
    fn an_unknown_instance_is_broken() {
        let findings = verify(&CallLog::default(), &BTreeMap::from([("a".to_string(), Rows::default())]));
        assert_eq!(findings.broken.len(), 1);
    }
}
