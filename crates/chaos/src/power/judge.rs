//! Holds what is stored against what callers were told.

use super::ledger::{Claim, Ledger, Story};
use super::stored::Rows;
use outlast_model::{Event, EventKind, WorkItem};
use std::collections::BTreeMap;

/// What is wrong.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// Acknowledged, and gone.
    pub(crate) lost: Vec<String>,
    /// Half-applied, doubled, or from nowhere: no setting excuses it.
    pub(crate) broken: Vec<String>,
}

/// Judges every instance. What is found stored counts as acknowledged from then on, and what is lost is forgotten: the next
/// cut answers for itself.
pub(crate) fn judge(ledger: &Ledger, stored: &BTreeMap<String, Rows>) -> Verdict {
    let mut verdict = Verdict::default();
    let mut stories = ledger.stories();
    for (instance, story) in stories.iter_mut() {
        let nothing = Rows::default();
        let rows = stored.get(instance).unwrap_or(&nothing);
        let mut case = Case { instance, rows, verdict: &mut verdict };
        if case.is_deleted(story) {
            *story = Story::default();
            continue;
        }
        case.history(story);
        case.messages(story);
        case.work(story);
        case.execution();
        case.outcome(story);
    }
    for instance in stored.keys().filter(|instance| !stories.contains_key(*instance)) {
        verdict.broken.push(format!("{instance} is stored, and nobody made it"));
    }
    // Nothing is left of those that were deleted, and of those that were never acknowledged and never stored.
    stories.retain(|_, story| !story.sent.is_empty());
    verdict
}

struct Case<'a> {
    instance: &'a str,
    rows: &'a Rows,
    verdict: &'a mut Verdict,
}

impl Case<'_> {
    fn lost(&mut self, what: impl std::fmt::Display) {
        self.verdict.lost.push(format!("{}: {what}", self.instance));
    }

    fn broken(&mut self, what: impl std::fmt::Display) {
        self.verdict.broken.push(format!("{}: {what}", self.instance));
    }

    /// An instance that was deleted leaves nothing; one that is still there is there as a whole.
    fn is_deleted(&mut self, story: &mut Story) -> bool {
        let Some(claim) = story.deletion.take() else { return false };
        let is_gone = self.rows.is_empty();
        if claim == Claim::Acknowledged && !is_gone {
            self.lost("its deletion");
        }
        is_gone
    }

    /// A turn is stored whole or not at all.
    fn history(&mut self, story: &mut Story) {
        let stored = self.rows.history.len();
        let mut all = story.history.clone();
        let mut ends = [0].into_iter().chain(story.turns.iter().copied()).collect::<Vec<_>>();
        for turn in story.proposed.drain(..) {
            all.extend(turn);
            ends.push(all.len());
        }
        if !all.starts_with(&self.rows.history) {
            let names = |events: &[Event]| {
                events.iter().map(|event| event.kind.type_name()).collect::<Vec<_>>().join(", ")
            };
            let (found, wanted) = (names(&self.rows.history), names(&all));
            self.broken(format_args!(
                "stored are {found}; committed were {wanted}, perhaps with other contents"
            ));
        } else if !ends.contains(&stored) {
            self.broken(format_args!("{stored} events are stored, but turns end at {ends:?}"));
        }
        for end in story.turns.iter().filter(|end| **end > stored) {
            self.lost(format_args!("the turn that ended with event {end}"));
        }
        story.history.clone_from(&self.rows.history);
        ends.retain(|end| (1..=stored).contains(end));
        story.turns = ends;
    }

    fn messages(&mut self, story: &mut Story) {
        for (message, claim) in std::mem::take(&mut story.sent) {
            match (self.rows.times(&message), claim) {
                (0, Claim::Acknowledged) => self.lost(message.kind_name()),
                (0, Claim::Asked) => {}
                (1, _) => story.sent.push((message, Claim::Acknowledged)),
                (times, _) => self.broken(format_args!("{} is stored {times} times", message.kind_name())),
            }
        }
        for message in &self.rows.messages {
            let is_known = match message {
                WorkItem::ActivityCompleted { id, .. } => story.work.contains_key(id),
                other => story.sent.iter().any(|(sent, _)| sent == other),
            };
            if !is_known {
                self.broken(format_args!("{} was never sent", message.kind_name()));
            }
        }
    }

    /// An activity waits, or its outcome is stored: exactly one of the two, from the turn that scheduled it on.
    fn work(&mut self, story: &mut Story) {
        let is_activity = |kind: &EventKind| matches!(kind, EventKind::ActivityScheduled { .. });
        let history = self.rows.history.iter();
        let scheduled: Vec<u64> =
            history.filter(|event| is_activity(&event.kind)).map(|event| event.event_id).collect();
        for id in &scheduled {
            let waiting = self.rows.work.iter().filter(|waiting| *waiting == id).count();
            let outcomes = self.rows.outcomes(*id);
            if waiting + outcomes != 1 {
                self.broken(format_args!("activity {id} waits {waiting} times and has {outcomes} outcomes"));
            }
        }
        if let Some(id) = self.rows.work.iter().find(|id| !scheduled.contains(id)) {
            self.broken(format_args!("activity {id} waits, and was never scheduled"));
        }
        for (id, claim) in std::mem::take(&mut story.work) {
            match (self.rows.outcomes(id), claim) {
                (0, Claim::Acknowledged) => self.lost(format_args!("the outcome of activity {id}")),
                (0, Claim::Asked) => {}
                _ => drop(story.work.insert(id, Claim::Acknowledged)),
            }
        }
    }

    /// The row of the execution says what its history says.
    fn execution(&mut self) {
        let Some(last) = self.rows.history.last() else {
            if self.rows.execution.is_some() {
                self.broken("it has an execution without history");
            }
            return;
        };
        let status = if last.is_terminal() { "Completed" } else { "Running" };
        let agrees = self.rows.execution.as_ref().is_some_and(|execution| {
            let is_numbered = last.event_id == self.rows.history.len() as u64;
            is_numbered
                && execution.last_event_id == last.event_id
                && execution.status == status
                && execution.has_instance
        });
        if !agrees {
            self.broken(format_args!(
                "{:?} does not fit to {} events, the last of which is {}",
                self.rows.execution,
                self.rows.history.len(),
                last.kind.type_name()
            ));
        }
    }

    fn outcome(&mut self, story: &mut Story) {
        if let Some(told) = story.told.take() {
            match self.rows.output() {
                Some(output) if output == told => story.told = Some(told),
                Some(output) => self.broken(format_args!("a client was told '{told}', stored is '{output}'")),
                None => self.lost("the outcome that a client was told"),
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

    /// Everything was acknowledged.
    fn ledger() -> Ledger {
        let ledger = Ledger::default();
        ledger.sends(&message("one"));
        ledger.sent(&message("one"));
        for turn in turns() {
            ledger.commits(&turn);
            ledger.committed(&turn);
        }
        ledger.completes(Some(&completion()), Claim::Acknowledged);
        ledger.told("a", "out".to_string());
        ledger
    }

    fn rows(history: Vec<Event>) -> Rows {
        let status = if history.len() == 4 { "Completed" } else { "Running" }.to_string();
        let execution = Execution { last_event_id: history.len() as u64, status, has_instance: true };
        let execution = (!history.is_empty()).then_some(execution);
        Rows { history, execution, ..Rows::default() }
    }

    fn counts(ledger: &Ledger, rows: Rows) -> (usize, usize) {
        let verdict = judge(ledger, &BTreeMap::from([("a".to_string(), rows)]));
        (verdict.lost.len(), verdict.broken.len())
    }

    #[test]
    fn a_store_that_has_everything_is_fine() {
        assert_eq!(counts(&ledger(), rows(turns().concat())), (0, 0));
    }

    #[test]
    fn what_is_gone_is_lost_once() {
        let ledger = ledger();
        // The last turn, the outcome of the activity and what the client was told.
        let earlier = || Rows { work: vec![1], ..rows(turns()[0].clone()) };
        assert_eq!(counts(&ledger, earlier()), (3, 0));
        assert_eq!(counts(&ledger, earlier()), (0, 0));
        // Now the message and the first turn too.
        assert_eq!(counts(&ledger, Rows::default()), (2, 0));
        assert!(ledger.stories().is_empty());
    }

    #[test]
    fn half_a_turn_is_broken() {
        let all = turns().concat();
        let cases = [
            ("a turn without its last event", rows(all[..3].to_vec())),
            ("an activity that still waits", Rows { work: vec![1], ..rows(all.clone()) }),
            ("an outcome that is stored twice", Rows { messages: vec![completion()], ..rows(all.clone()) }),
            ("a message that is stored twice", Rows { messages: vec![message("one")], ..rows(all.clone()) }),
            ("a message from nowhere", Rows { messages: vec![message("two")], ..rows(all.clone()) }),
            ("no activity", rows(turns()[0].clone())),
            ("no execution", Rows { execution: None, ..rows(all.clone()) }),
            ("another history", rows(all.iter().rev().cloned().collect())),
        ];
        for (what, rows) in cases {
            assert!(counts(&ledger(), rows).1 > 0, "{what}");
        }
    }

    #[test]
    fn a_turn_without_an_answer_may_be_stored_or_not() {
        for is_stored in [true, false] {
            let ledger = Ledger::default();
            ledger.sends(&message("one"));
            ledger.commits(&turns()[0]);
            let rows =
                if is_stored { Rows { work: vec![1], ..rows(turns()[0].clone()) } } else { Rows::default() };
            assert_eq!(counts(&ledger, rows), (0, 0), "stored: {is_stored}");
        }
    }

    #[test]
    fn a_deletion_is_whole_and_stays() {
        for claim in [Claim::Asked, Claim::Acknowledged] {
            let deleted = || {
                let ledger = ledger();
                ledger.deletes("a", claim);
                ledger
            };
            assert_eq!(counts(&deleted(), Rows::default()), (0, 0));
            let is_lost = usize::from(claim == Claim::Acknowledged);
            assert_eq!(counts(&deleted(), rows(turns().concat())), (is_lost, 0));
            let leftover = Rows { messages: vec![completion()], ..Rows::default() };
            assert_ne!(counts(&deleted(), leftover), (0, 0));
        }
    }

    #[test]
    fn an_instance_from_nowhere_is_broken() {
        let verdict = judge(&Ledger::default(), &BTreeMap::from([("a".to_string(), Rows::default())]));
        assert_eq!(verdict.broken.len(), 1);
    }
}
