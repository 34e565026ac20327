//! Folds the events of an execution, turn by turn, into the operations that ended.
//!
//! | operation | ends with |
//! |---|---|
//! | activity | its outcome, which is no span here because each delivery is one; or the request to cancel it, which is a span |
//! | timer | its fired event; a timer that the code dropped has no end |
//! | wait for an event | the event, which ends the oldest open wait of its name, or the cancellation |
//! | wait for a queue message | a message: each one ends the oldest wait of its queue that the turn does not cancel, or the cancellation |

use crate::seen::{Ending, Kind, Seen};
use outlast::runtime::observer::StartNote;
use std::collections::{HashMap, HashSet, VecDeque};

/// The beginning of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opening {
    pub(crate) at_ms: u64,
    pub(crate) name: String,
    pub(crate) version: String,
    /// The parent and its execution.
    pub(crate) parent: Option<(String, u64)>,
    /// The note that came with the start, before the first decision.
    pub(crate) note: Option<StartNote>,
}

impl Opening {
    /// Reads the beginning of an execution from its first events.
    pub(crate) fn of(seen: &[Seen]) -> Option<Self> {
        let first = seen.first()?;
        let Kind::Started { name, version, parent, .. } = &first.kind else { return None };
        let is_arrival =
            |kind: &Kind| matches!(kind, Kind::Note(_) | Kind::Message(_) | Kind::Event(_) | Kind::Other);
        let note =
            seen[1..].iter().take_while(|seen| is_arrival(&seen.kind)).find_map(|seen| match &seen.kind {
                Kind::Note(note) => Some(note.clone()),
                _ => None,
            });
        let (name, version, parent) = (name.clone(), version.clone(), parent.clone());
        Some(Self { at_ms: first.at_ms, name, version, parent, note })
    }
}

/// An operation of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    Activity(String),
    Timer,
    Wait(String),
}

/// An operation that has ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Closed {
    /// The event that started the operation.
    pub(crate) event_id: u64,
    pub(crate) operation: Operation,
    pub(crate) from_ms: u64,
    pub(crate) to_ms: u64,
    pub(crate) ending: Ending,
}

/// The state of an execution that the next turns need.
#[derive(Default)]
pub(crate) struct Fold {
    /// The last event.
    pub(crate) last: u64,
    pub(crate) opening: Option<Opening>,
    open: HashMap<u64, (Operation, u64)>,
    events: HashMap<String, Named>,
    queues: HashMap<String, Named>,
    is_buffered: bool,
}

/// The open waits of one name, oldest first, and the number of arrivals that no wait has taken.
#[derive(Default)]
struct Named {
    waits: VecDeque<u64>,
    kept: u64,
}

impl Fold {
    /// Applies the events of one turn, or of several. Returns the operations that they end.
    pub(crate) fn apply(&mut self, turn: &[Seen]) -> Vec<Closed> {
        if self.opening.is_none() {
            self.opening = Opening::of(turn);
        }
        let cancelled = turn.iter().filter(|seen| matches!(seen.kind, Kind::Ended(Ending::Cancelled)));
        let cancelled: HashSet<u64> = cancelled.filter_map(|seen| seen.source).collect();
        let mut closed = Vec::new();
        for seen in turn {
            self.last = seen.id;
            self.event(seen, &cancelled, &mut closed);
        }
        closed
    }

    fn event(&mut self, seen: &Seen, cancelled: &HashSet<u64>, closed: &mut Vec<Closed>) {
        match &seen.kind {
            Kind::Started { is_buffered, .. } => self.is_buffered = *is_buffered,
            Kind::Activity(name) => {
                self.open.insert(seen.id, (Operation::Activity(name.clone()), seen.at_ms));
            }
            Kind::Timer => {
                self.open.insert(seen.id, (Operation::Timer, seen.at_ms));
            }
            Kind::Wait(name) => {
                self.open.insert(seen.id, (Operation::Wait(name.clone()), seen.at_ms));
                if wait(&mut self.events, name, seen.id) {
                    self.close(seen.id, seen, Ending::Done, closed);
                }
            }
            Kind::Dequeue(name) => {
                self.open.insert(seen.id, (Operation::Wait(name.clone()), seen.at_ms));
                // A message passes a wait by that the same turn cancels.
                if !cancelled.contains(&seen.id) && wait(&mut self.queues, name, seen.id) {
                    self.close(seen.id, seen, Ending::Done, closed);
                }
            }
            Kind::Event(name) => match self.next_wait(name, |fold| &mut fold.events, &HashSet::new()) {
                Some(id) => self.close(id, seen, Ending::Done, closed),
                None if self.is_buffered => self.events.entry(name.clone()).or_default().kept += 1,
                None => {}
            },
            Kind::Message(name) => match self.next_wait(name, |fold| &mut fold.queues, cancelled) {
                Some(id) => self.close(id, seen, Ending::Done, closed),
                None => self.queues.entry(name.clone()).or_default().kept += 1,
            },
            Kind::Ended(ending) => {
                if let Some(source) = seen.source {
                    self.close(source, seen, *ending, closed);
                }
            }
            Kind::Completed
            | Kind::Failed(_)
            | Kind::ContinuedAsNew
            | Kind::Detached(..)
            | Kind::Note(_)
            | Kind::Other => {}
        }
    }

    fn close(&mut self, id: u64, by: &Seen, ending: Ending, closed: &mut Vec<Closed>) {
        if let Some((operation, from_ms)) = self.open.remove(&id) {
            // The deliveries of an activity that has an outcome are spans.
            if !matches!((&operation, ending), (Operation::Activity(_), Ending::Done)) {
                closed.push(Closed { event_id: id, operation, from_ms, to_ms: by.at_ms, ending });
            }
        }
    }

    /// Takes the oldest wait of a name that has no end and is not passed by.
    fn next_wait(
        &mut self,
        name: &str,
        of: impl Fn(&mut Self) -> &mut HashMap<String, Named>,
        passed_by: &HashSet<u64>,
    ) -> Option<u64> {
        loop {
            let id = of(self).get_mut(name)?.waits.pop_front()?;
            if self.open.contains_key(&id) && !passed_by.contains(&id) {
                return Some(id);
            }
        }
    }
}

/// Adds a wait. Returns whether it takes what arrived before it.
fn wait(named: &mut HashMap<String, Named>, name: &str, id: u64) -> bool {
    let named = named.entry(name.to_string()).or_default();
    if named.kept == 0 {
        named.waits.push_back(id);
        return false;
    }
    named.kept -= 1;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(is_buffered: bool) -> Kind {
        Kind::Started { name: "O".into(), version: "1.0.0".into(), parent: None, is_buffered }
    }

    fn text(text: &str) -> String {
        text.to_string()
    }

    fn turn(first: u64, events: Vec<(Option<u64>, Kind)>) -> Vec<Seen> {
        let event =
            |(id, (source, kind)): (u64, (Option<u64>, Kind))| Seen { id, source, at_ms: id * 10, kind };
        (first..).zip(events).map(event).collect()
    }

    fn ended(closed: Vec<Closed>) -> Vec<(u64, u64, u64, Ending)> {
        closed.into_iter().map(|c| (c.event_id, c.from_ms, c.to_ms, c.ending)).collect()
    }

    #[test]
    fn an_operation_of_an_earlier_turn_ends_with_its_own_start() {
        let mut fold = Fold::default();
        let first = vec![
            (None, started(false)),
            (None, Kind::Timer),
            (None, Kind::Timer),
            (None, Kind::Wait(text("ok"))),
            (None, Kind::Activity(text("A"))),
            (None, Kind::Activity(text("B"))),
        ];
        assert!(fold.apply(&turn(1, first)).is_empty());
        let second = vec![
            (Some(3), Kind::Ended(Ending::Done)),
            (None, Kind::Event(text("other"))),
            (None, Kind::Event(text("ok"))),
            (Some(5), Kind::Ended(Ending::Done)),
            (Some(6), Kind::Ended(Ending::Cancelled)),
            (Some(3), Kind::Ended(Ending::Done)),
        ];
        let closed = ended(fold.apply(&turn(7, second)));
        let expected =
            [(3, 30, 70, Ending::Done), (4, 40, 90, Ending::Done), (6, 60, 110, Ending::Cancelled)];
        assert_eq!(
            closed, expected,
            "the outcome of A is a span of its delivery, and a second outcome does not count"
        );
        assert_eq!(fold.last, 12);
    }

    #[test]
    fn arrivals_end_the_oldest_wait_of_their_name() {
        let mut fold = Fold::default();
        let first = vec![
            (None, started(false)),
            (None, Kind::Event(text("x"))),
            (None, Kind::Wait(text("x"))),
            (None, Kind::Wait(text("x"))),
            (None, Kind::Message(text("q"))),
            (None, Kind::Dequeue(text("q"))),
        ];
        assert_eq!(
            ended(fold.apply(&turn(1, first))),
            [(6, 60, 60, Ending::Done)],
            "a queue keeps, an event does not"
        );
        let second = vec![
            (None, Kind::Event(text("x"))),
            (Some(4), Kind::Ended(Ending::Cancelled)),
            (None, Kind::Event(text("x"))),
        ];
        let expected = [(3, 30, 70, Ending::Done), (4, 40, 80, Ending::Cancelled)];
        assert_eq!(ended(fold.apply(&turn(7, second))), expected);
    }

    #[test]
    fn a_message_passes_a_dequeue_by_that_the_same_turn_cancels() {
        let mut fold = Fold::default();
        let dequeue = || (None, Kind::Dequeue(text("q")));
        fold.apply(&turn(1, vec![(None, started(false)), dequeue(), dequeue()]));
        let second = vec![(None, Kind::Message(text("q"))), (Some(2), Kind::Ended(Ending::Cancelled))];
        let expected = [(3, 30, 40, Ending::Done), (2, 20, 50, Ending::Cancelled)];
        assert_eq!(ended(fold.apply(&turn(4, second))), expected);
    }

    #[test]
    fn a_buffered_execution_keeps_early_events() {
        let mut fold = Fold::default();
        let first =
            vec![(None, started(true)), (None, Kind::Event(text("x"))), (None, Kind::Wait(text("x")))];
        assert_eq!(ended(fold.apply(&turn(1, first))), [(3, 30, 30, Ending::Done)]);
    }

    #[test]
    fn a_note_counts_only_before_the_first_decision() {
        let note = || Kind::Note(StartNote::Starter { instance: text("s"), execution_id: 1, event_id: 2 });
        let early = vec![(None, started(false)), (None, Kind::Message(text("q"))), (None, note())];
        assert!(Opening::of(&turn(1, early)).unwrap().note.is_some());
        let late = vec![(None, started(false)), (None, Kind::Timer), (None, note())];
        assert!(Opening::of(&turn(1, late)).unwrap().note.is_none());
        assert!(Opening::of(&turn(2, vec![(None, Kind::Timer)])).is_none());
    }
}
