//! Positional events with a topic: an operation of a newer contract, which only tests enable.

use super::signal::arrive;
use super::{Op, Operation};
use crate::context::OrchestrationContext;
use crate::draft::Draft;
use crate::execution::{Execution, Stop};
use crate::future::{DurableFuture, Raw};
use crate::history_summary::HistorySummary;
use crate::receive::Receipt;
use outlast_model::{Action, Event, EventKind, ScheduleKind, WorkItem};
use std::borrow::Cow;
use std::panic::Location;

impl OrchestrationContext {
    /// Waits for an event with this name and topic.
    #[track_caller]
    pub fn schedule_wait2(&self, name: impl Into<String>, topic: impl Into<String>) -> DurableFuture<String> {
        let (name, topic) = (name.into(), topic.into());
        let kind = ScheduleKind::ExternalWait { event_name: name.clone() };
        let inbox_name = inbox_name(&name, &topic);
        let action = Action::WaitExternal2 { scheduling_event_id: 0, name, topic };
        let token = self.lock().decide_with_future(Op::Signal, Some(inbox_name), action, "schedule_wait2", Location::caller());
        DurableFuture::new(self, token, kind, Raw::into_data)
    }
}

/// The inbox of positional events that topic waits use. No name that a client can raise contains a line break and a NUL.
fn inbox_name(name: &str, topic: &str) -> String {
    format!("{name}\n\0{topic}")
}

pub(crate) struct Topic;

/// The future of a topic wait is a [`Signal`](super::signal::Signal) wait on an inbox per name and topic.
impl Operation for Topic {
    fn name(&self) -> &'static str {
        "wait"
    }

    fn event(&self, action: &Action, _execution_id: u64, _event_id: u64) -> Option<EventKind> {
        let Action::WaitExternal2 { name, topic, .. } = action else { return None };
        Some(EventKind::ExternalSubscribed2 { name: name.clone(), topic: topic.clone() })
    }

    fn matches(&self, action: &Action, recorded: &EventKind) -> bool {
        self.event(action, 0, 0).is_some_and(|event| event == *recorded)
    }

    fn describe(&self, decision: &EventKind) -> String {
        match decision {
            EventKind::ExternalSubscribed2 { name, topic } => {
                format!("a wait for event '{name}' on topic '{topic}'")
            }
            other => other.type_name().to_string(),
        }
    }

    fn note_decision(&self, summary: &mut HistorySummary, event: &Event) {
        summary.expect_outcome(Op::Topic, event.event_id);
    }

    fn inbox_of<'a>(&self, arrival: &'a EventKind) -> Option<(Op, Cow<'a, str>)> {
        let EventKind::ExternalEvent2 { name, topic, .. } = arrival else { return None };
        Some((Op::Signal, Cow::Owned(inbox_name(name, topic))))
    }

    /// An event whose topic no wait ever named is not recorded.
    fn receive(&self, execution: &Execution, _draft: &mut Draft, message: WorkItem) -> Receipt {
        let WorkItem::ExternalRaised2 { name, topic, data, .. } = message else { return Receipt::Drop };
        if !execution.context.lock().inboxes.signals.has_inbox(&inbox_name(&name, &topic)) {
            return Receipt::Drop;
        }
        Receipt::record(EventKind::ExternalEvent2 { name, topic, data })
    }

    fn deliver(&self, execution: &mut Execution, event: Event) -> Result<(), Stop> {
        if let EventKind::ExternalEvent2 { name, topic, data } = event.kind {
            arrive(execution, &inbox_name(&name, &topic), data);
        }
        Ok(())
    }
}
