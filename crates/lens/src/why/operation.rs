//! Rules about the open operations of an execution.

use super::diagnosis::{Finding, Rule};
use super::evidence::Evidence;
use super::node::{Registering, on_node, owner, registering};
use super::words::{
    SUSPICIOUS_MS, argument, delivery, quoted, since, times, uncommitted, unfetched, until, until_moment,
};
use crate::count::counted;
use crate::open::Operation;
use crate::operations::{Ending, operations};
use crate::time::moment;
use crate::wait::{Progress, Wait, waits};
use outlast_model::{DeadLetterQueue, EventKind, NodeRecord, QueuedItem, decode_head};

pub(super) fn diagnose(evidence: &Evidence<'_>) -> Finding {
    let waits = waits(evidence.history, evidence.pending);
    let Some(chosen) = waits.iter().min_by_key(|wait| (urgency(wait), due_ms(wait), wait.open.event_id))
    else {
        return nothing(evidence);
    };
    let now = evidence.pending.map_or(evidence.now_ms, |pending| pending.now_ms);
    let case = Case { evidence, wait: chosen, others: waits.len() - 1, now };
    let mut finding = match (&chosen.open.operation, &chosen.progress) {
        (_, Progress::Lost) => case.lost(),
        (_, Progress::Answered) => case.answered(),
        (Operation::Activity { name, tag, session_id }, progress) => {
            case.activity(name, tag.as_deref(), session_id.as_deref(), progress)
        }
        (Operation::Child { name, instance }, _) => return case.child(name, instance),
        (Operation::Event { name }, _) => case.event(name, earliest_timer(&waits)),
        (Operation::Queue { name }, _) => case.message(name, earliest_timer(&waits)),
        (Operation::Timer { fire_at_ms }, _) => case.timer(*fire_at_ms),
    };
    if case.others > 0 && !matches!(chosen.open.operation, Operation::Event { .. } | Operation::Queue { .. })
    {
        finding.says.push_str(&format!(" ({} open)", counted(case.others, "other operation")));
    }
    finding
}

/// The order in which open operations explain the wait: damage first, then the operations that others work on, timers last.
fn urgency(wait: &Wait) -> u8 {
    match (&wait.open.operation, &wait.progress) {
        (_, Progress::Lost) => 0,
        (Operation::Activity { .. }, Progress::Queued { deliveries: 1.., .. }) => 1,
        (Operation::Activity { .. }, Progress::Queued { .. } | Progress::Unknown) => 2,
        (Operation::Activity { .. }, _) => 3,
        (Operation::Child { .. }, _) => 4,
        (Operation::Event { .. }, _) => 5,
        (Operation::Queue { .. }, _) => 6,
        (Operation::Timer { .. }, _) => 7,
    }
}

/// Timers are compared by the time when they are due.
fn due_ms(wait: &Wait) -> u64 {
    match wait.open.operation {
        Operation::Timer { fire_at_ms } => fire_at_ms,
        _ => 0,
    }
}

fn earliest_timer(waits: &[Wait]) -> Option<u64> {
    let timers = waits.iter().filter(|wait| matches!(wait.open.operation, Operation::Timer { .. }));
    timers.map(due_ms).min()
}

/// No operation is open, no turn is due, and no message was given back.
fn nothing(evidence: &Evidence<'_>) -> Finding {
    match evidence.pending {
        None => {
            let says = "runs and has no open operation: this store does not report queued messages";
            Finding::new(Rule::Unknown, says)
        }
        Some(_) => {
            let says = "waits for nothing that can happen: no operation is open and no message is queued, so cancel it";
            let remedy = Some(format!("outlast instance cancel {}", argument(evidence.instance)));
            Finding { remedy, ..Finding::new(Rule::WaitsForNothing, says) }
        }
    }
}

struct Case<'a> {
    evidence: &'a Evidence<'a>,
    wait: &'a Wait,
    /// The number of other open operations.
    others: usize,
    now: u64,
}

impl Case<'_> {
    fn since(&self) -> String {
        since(self.wait.open.since_ms, self.now)
    }

    fn subject(&self) -> String {
        match &self.wait.open.operation {
            Operation::Activity { name, .. } => format!("activity {}", quoted(name)),
            Operation::Timer { .. } => "a timer".to_string(),
            Operation::Event { name } => format!("event {}", quoted(name)),
            Operation::Queue { name } => format!("a message of queue {}", quoted(name)),
            Operation::Child { name, instance } => format!("child {} ({})", quoted(instance), quoted(name)),
        }
    }

    fn lost(&self) -> Finding {
        let waits = format!("has waited {} for {}", self.since(), self.subject());
        if let Some(dead_at) = self.dead_at() {
            let says = format!("{waits}, whose item became a dead letter at {} UTC", moment(dead_at));
            return Finding::new(Rule::SetAside, says);
        }
        let says =
            format!("{waits}, and no queued item can end it: the store is damaged, so cancel the instance");
        let remedy = Some(format!("outlast instance cancel {}", argument(self.evidence.instance)));
        Finding { remedy, ..Finding::new(Rule::OperationLost, says) }
    }

    /// When the item of the operation became a dead letter. An item that does not decode may be any item of its queue.
    fn dead_at(&self) -> Option<u64> {
        let is_activity = matches!(self.wait.open.operation, Operation::Activity { .. });
        let own = self.evidence.dead_letters.iter().filter(|letter| {
            let is_own = match decode_head(&letter.work_item) {
                Some(head) => head.id == Some(self.wait.open.event_id),
                None => true,
            };
            is_own && (is_activity || letter.queue == DeadLetterQueue::Orchestrator)
        });
        own.map(|letter| letter.dead_at).max()
    }

    fn answered(&self) -> Finding {
        let says =
            format!("has the outcome of {} in its queue, and no turn can be fetched yet", self.subject());
        Finding::new(Rule::OutcomeDelayed, says)
    }

    fn activity(&self, name: &str, tag: Option<&str>, session: Option<&str>, progress: &Progress) -> Finding {
        let waits = format!("has waited {} for activity {}", self.since(), quoted(name));
        let (registering, what) = self.registering(name, tag);
        let (failures, mut early_advice) = (self.failures(), None);
        let failed = match failures {
            1 => "its handler failed once".to_string(),
            count => format!("its handler failed {count} times"),
        };
        let (rule, state) = match *progress {
            Progress::Leased { until_ms, deliveries } => {
                let delivery = delivery(deliveries, self.evidence);
                let end = until(until_ms, self.now);
                let before = if failures > 0 { format!("{failed} before, ") } else { String::new() };
                let owner = owner(self.evidence, self.key());
                let node = on_node(owner);
                let state = match owner.is_some_and(NodeRecord::is_lost) {
                    true => format!("{before}it runs{node} and is delivered again {end} ({delivery})"),
                    false => format!(
                        "{before}it runs{node} ({delivery}), and is delivered again {end} if its process has died"
                    ),
                };
                (Rule::ActivityLeased, state)
            }
            Progress::Queued { visible_at_ms, .. } if failures > 0 && visible_at_ms > self.now => {
                let next = until(visible_at_ms, self.now);
                (Rule::ActivityGivenBack, format!("{failed}, and the next try is {next}"))
            }
            Progress::Queued { deliveries: 0, .. } if failures > 0 => {
                (Rule::ActivityQueued, format!("{failed}, and it is queued for its next try"))
            }
            Progress::Queued { visible_at_ms, deliveries } if visible_at_ms > self.now => {
                let next = until(visible_at_ms, self.now);
                let why = uncommitted(registering, &what);
                let tried = times(deliveries, self.evidence);
                (
                    Rule::ActivityGivenBack,
                    format!("it was delivered {tried} and given back, and the next try is {next}: {why}"),
                )
            }
            Progress::Queued { deliveries: 0, visible_at_ms } => {
                let is_old = self.now.saturating_sub(visible_at_ms) >= SUSPICIOUS_MS;
                let advice = match self.untaken_tag(tag) {
                    Some(tag) => format!("no live node takes tag {}", quoted(tag)),
                    None => unfetched(registering, &what),
                };
                let state = queued(is_old, session, &advice);
                early_advice = (!is_old && session.is_none()).then_some(advice);
                (Rule::ActivityQueued, state)
            }
            Progress::Queued { deliveries, .. } => {
                let tried = times(deliveries, self.evidence);
                let why = uncommitted(registering, &what);
                (
                    Rule::ActivityNotCommitted,
                    format!("it was delivered {tried} without an outcome, and is queued: {why}"),
                )
            }
            _ => (Rule::ActivityUnknown, "this store does not report its progress".to_string()),
        };
        Finding { early_advice, ..Finding::new(rule, format!("{waits}: {state}")) }
    }

    /// The live nodes that can run the activity, and the code that they need. If no live node takes its tag, the tag is the news.
    fn registering(&self, name: &str, tag: Option<&str>) -> (Registering, String) {
        let found = registering(self.evidence, |node| {
            node.tags.take(tag) && node.activities.iter().any(|own| own == name)
        });
        let what = match tag {
            Some(tag) => format!("{} and takes tag {}", quoted(name), quoted(tag)),
            None => quoted(name),
        };
        (found, what)
    }

    /// The tag of the activity, if no live node takes it.
    fn untaken_tag<'t>(&self, tag: Option<&'t str>) -> Option<&'t str> {
        let is_taken = registering(self.evidence, |node| node.tags.take(tag)) != Registering::Nodes(0);
        tag.filter(|_| !is_taken)
    }

    /// The row of the activity in its queue.
    fn item(&self) -> Option<&QueuedItem> {
        let activities = self.evidence.pending.map_or(&[][..], |pending| &pending.activities);
        activities.iter().find(|item| item.id == Some(self.wait.open.event_id))
    }

    /// The execution and scheduling event of the activity.
    fn key(&self) -> Option<(u64, u64)> {
        let item = self.item()?;
        Some((item.execution_id?, item.id?))
    }

    /// The failures that the handler of the activity has reported.
    fn failures(&self) -> u32 {
        self.item().map_or(0, |item| item.failures)
    }

    fn child(&self, name: &str, instance: &str) -> Finding {
        let (child, since) = (format!("child {} ({})", quoted(instance), quoted(name)), self.since());
        let says = match self.others {
            0 => format!("has waited {since} for {child}"),
            others => {
                format!(
                    "waits for {}, and has waited {since} for {child}",
                    counted(others, "other operation")
                )
            }
        };
        Finding { child: Some(instance.to_string()), ..Finding::new(Rule::Child, says) }
    }

    fn event(&self, name: &str, timer: Option<u64>) -> Finding {
        let dropped = operations(self.evidence.history).dropped_events.get(name).copied().unwrap_or(0);
        let waits = format!("has waited {} for event {}{}", self.since(), quoted(name), self.timeout(timer));
        let (rule, says) = match dropped {
            0 => (Rule::EventNotSent, format!("{waits}, and no client has sent it; this command sends it")),
            _ => (
                Rule::EventDropped,
                format!(
                    "{waits}, and the event was sent before the wait began and was dropped; this command sends it again"
                ),
            ),
        };
        let remedy =
            format!("outlast instance signal {} {} DATA", argument(self.evidence.instance), argument(name));
        Finding { remedy: Some(remedy), ..Finding::new(rule, says) }
    }

    fn message(&self, name: &str, timer: Option<u64>) -> Finding {
        let says = format!(
            "has waited {} for a message of queue {}{}, and no client has sent one; this command sends one",
            self.since(),
            quoted(name),
            self.timeout(timer)
        );
        let remedy =
            format!("outlast instance enqueue {} {} DATA", argument(self.evidence.instance), argument(name));
        Finding { remedy: Some(remedy), ..Finding::new(Rule::MessageNotSent, says) }
    }

    /// The other operations beside a wait: the earliest timer, which may end the wait, and the number of all others.
    fn timeout(&self, timer: Option<u64>) -> String {
        match (timer, self.others) {
            (_, 0) => String::new(),
            (Some(at), 1) => format!(" (a timer fires {})", until(at, self.now)),
            (Some(at), others) => {
                let others = counted(others - 1, "other operation");
                format!(" (a timer fires {}, {others} open)", until(at, self.now))
            }
            (None, others) => format!(" ({} open)", counted(others, "other operation")),
        }
    }

    fn timer(&self, fire_at_ms: u64) -> Finding {
        let until = until_moment(fire_at_ms, self.now);
        match self.failed_try() {
            Some((name, tries)) => {
                let says = format!("sleeps {until}, after try {tries} of activity {} failed", quoted(name));
                Finding::new(Rule::RetrySleeps, says)
            }
            None => Finding::new(Rule::Sleeps, format!("sleeps {until}")),
        }
    }

    /// The failed activity whose next try the timer delays, and the number of its tries in a row. The turn that received the failure set
    /// the timer, and all events of a turn have one time: the timers of a turn belong to its failures, in their order.
    fn failed_try(&self) -> Option<(&str, usize)> {
        let history = self.evidence.history;
        let timer = history.iter().position(|event| event.event_id == self.wait.open.event_id)?;
        let turn_ms = history[timer].timestamp_ms;
        let before = history[..timer].iter().rev().take_while(|event| event.timestamp_ms == turn_ms).count();
        let turn = &history[timer - before..timer];
        let timers = turn.iter().filter(|event| matches!(event.kind, EventKind::TimerCreated { .. })).count();
        let mut failures = turn.iter().filter(|event| matches!(event.kind, EventKind::ActivityFailed { .. }));
        let failure = failures.nth(timers)?;
        let started = operations(&history[..timer]).all;
        let scheduled = started.iter().find(|one| Some(one.event.event_id) == failure.source_event_id)?;
        let EventKind::ActivityScheduled { name, input, .. } = &scheduled.event.kind else { return None };
        let is_same = |kind: &EventKind| matches!(kind, EventKind::ActivityScheduled { name: own, input: given, .. } if own == name && given == input);
        let tries = started.iter().rev().filter(|one| is_same(&one.event.kind));
        let tries = tries.take_while(|one| one.end.is_some_and(|end| end.how == Ending::Failed));
        Some((name, tries.count()))
    }
}

fn queued(is_old: bool, session: Option<&str>, advice: &str) -> String {
    match (is_old, session) {
        (false, _) => "it is queued".to_string(),
        (true, None) => format!("it is queued, and no runtime has fetched it: {advice}"),
        (true, Some(session)) => format!(
            "it is queued, and the owner of session {} has not fetched it: {advice}, or wait until the session has no owner",
            quoted(session)
        ),
    }
}
