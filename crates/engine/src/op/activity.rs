//! Activities: functions that a worker runs outside of the orchestration, at least once.

use super::entropy::SystemCall;
use super::{HasOutcome, Op, Operation};
use crate::context::{Identity, OrchestrationContext};
use crate::decide::Emitted;
use crate::draft::{Draft, Recorded, Retry};
use crate::execution::{Execution, Stop};
use crate::finish::Closing;
use crate::future::{DurableFuture, Raw};
use crate::history_summary::{HistorySummary, Standing};
use crate::receive::{Outcome, Receipt, system_failure};
use crate::replay_error::Mismatch;
use crate::state::{Site, State};
use outlast_model::{Action, Event, EventKind, ExecutionStatus, ScheduleKind, WorkItem};
use serde::{Serialize, de::DeserializeOwned};
use std::collections::{BTreeSet, VecDeque};
use std::panic::Location;

impl OrchestrationContext {
    /// Runs an activity. It is scheduled by this call; awaiting the future waits for its outcome.
    #[track_caller]
    pub fn schedule_activity(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        self.call_activity(name.into(), input.into(), None, Location::caller())
    }

    /// Runs an activity with typed input and output.
    #[track_caller]
    pub fn schedule_activity_typed<In: Serialize, Out: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
        input: &In,
    ) -> DurableFuture<Result<Out, String>> {
        let (name, input) = (name.into(), self.encoded(input, "activity input"));
        self.decoded(self.call_activity(name, input, None, Location::caller()))
    }

    /// Runs an activity on the worker that owns the session. If no worker owns it, the worker that fetches the activity does
    /// from then on.
    #[track_caller]
    pub fn schedule_activity_on_session(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
        session_id: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        self.call_activity(name.into(), input.into(), Some(session_id.into()), Location::caller())
    }

    /// Runs an activity with typed input and output on the worker that owns the session.
    #[track_caller]
    pub fn schedule_activity_on_session_typed<In: Serialize, Out: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
        input: &In,
        session_id: impl Into<String>,
    ) -> DurableFuture<Result<Out, String>> {
        let (name, input) = (name.into(), self.encoded(input, "activity input"));
        self.decoded(self.call_activity(name, input, Some(session_id.into()), Location::caller()))
    }

    pub(crate) fn call_activity(
        &self,
        name: String,
        input: String,
        session_id: Option<String>,
        site: Site,
    ) -> DurableFuture<Result<String, String>> {
        self.call_activity_as(name, input, session_id, site, Raw::into_result)
    }

    /// [`OrchestrationContext::call_activity`] with another form of the outcome.
    pub(crate) fn call_activity_as<T: 'static>(
        &self,
        name: String,
        input: String,
        session_id: Option<String>,
        site: Site,
        read: impl FnOnce(Raw) -> T + Send + 'static,
    ) -> DurableFuture<T> {
        let kind = ScheduleKind::Activity { name: name.clone() };
        let mut state = self.lock();
        state.check_name("activity name", &name);
        state.check_name("session id", session_id.as_deref().unwrap_or_default());
        state.check_payload("input of activity", &name, &input);
        let action = Action::CallActivity { scheduling_event_id: 0, name, input, session_id, tag: None };
        let token = state.decide_with_future(Op::Activity, None, action, "schedule_activity", site);
        drop(state);
        DurableFuture::new(self, token, kind, read)
    }
}

impl OrchestrationContext {
    /// Decodes the output of a future.
    pub(crate) fn decoded<Out: DeserializeOwned + Send + 'static>(
        &self,
        future: DurableFuture<Result<String, String>>,
    ) -> DurableFuture<Result<Out, String>> {
        let codec = self.codec();
        future.map(move |result| codec.decode(&result?))
    }

    /// The payload of a typed value.
    ///
    /// # Panics
    ///
    /// If the value cannot be written as JSON: a programming error, such as a map with keys that are not strings.
    #[track_caller]
    pub(crate) fn encoded<T: Serialize + ?Sized>(&self, value: &T, what: &str) -> String {
        match self.codec().encode(value) {
            Ok(text) => text,
            Err(error) => panic!("{what} cannot be written as JSON: {error}"),
        }
    }
}

impl<T: Send + 'static> DurableFuture<T> {
    /// Sends the activity to workers that subscribe to `tag`. The last call counts.
    ///
    /// # Panics
    ///
    /// If this is not an activity, or if it was scheduled already: call it in the same expression as `schedule_activity`.
    #[track_caller]
    pub fn with_tag(self, tag: impl Into<String>) -> Self {
        assert!(
            matches!(self.kind, ScheduleKind::Activity { .. }),
            "with_tag() can only be called on activity futures, got {:?}",
            self.kind
        );
        // Before the lock is taken: the conversion may be code of the caller.
        let tag = tag.into();
        let tagged = self.context.lock().tag_activity(self.token, tag);
        assert!(
            tagged,
            "with_tag() came too late: {:?} was scheduled already; call it right after scheduling",
            self.kind
        );
        self
    }
}

impl State {
    /// Sets the tag of an activity that has no event yet; false if the activity has one.
    pub(crate) fn tag_activity(&mut self, token: u64, new_tag: String) -> bool {
        let limit = self.limits.tag_bytes;
        let position = self.emitted.iter().rposition(|emitted| emitted.token == Some(token));
        let found = position.and_then(|position| self.emitted.get_mut(position));
        let Some(Action::CallActivity { name, tag, .. }) = found.map(|emitted| &mut emitted.action) else {
            // A decision after a violation is not emitted, so there is no activity to tag.
            return self.violation.is_some();
        };
        let size = new_tag.len();
        let too_long = (size > limit).then(|| {
            format!(
                "Activity '{name}' tag size ({size} bytes) exceeds limit ({limit} bytes): shorten it, or raise \
                 limits.tag_bytes"
            )
        });
        *tag = Some(new_tag);
        if let Some(emitted) = position.and_then(|position| self.emitted.get_mut(position)) {
            emitted.tag_is_default = false;
        }
        let is_new = position.is_some_and(|position| self.ahead.len() <= position);
        if let Some(text) = too_long.filter(|_| is_new && self.violation.is_none()) {
            self.violation = Some(text);
        }
        true
    }
}

/// Activities that are scheduled and neither completed, failed nor dropped, by scheduling event.
#[derive(Debug, Default)]
pub(crate) struct OpenActivities(BTreeSet<u64>);

impl OpenActivities {
    /// The scheduling events.
    pub(crate) fn ids(&self) -> &BTreeSet<u64> {
        &self.0
    }
}

pub(crate) struct Activity;

impl Operation for Activity {
    fn name(&self) -> &'static str {
        "activity"
    }

    fn event(&self, action: &Action, _execution_id: u64, _event_id: u64) -> Option<EventKind> {
        let Action::CallActivity { name, input, session_id, tag, .. } = action.clone() else { return None };
        Some(EventKind::ActivityScheduled { name, input, session_id, tag })
    }

    fn matches(&self, action: &Action, recorded: &EventKind) -> bool {
        let Action::CallActivity { name, input, session_id, tag, .. } = action else { return false };
        let EventKind::ActivityScheduled { name: name2, input: input2, session_id: session_id2, tag: tag2 } =
            recorded
        else {
            return false;
        };
        (name, input, session_id, tag) == (name2, input2, session_id2, tag2)
    }

    /// A default tag is not compared: the stored tag is kept, so that a deployment can change the default.
    fn find(&self, emitted: &VecDeque<Emitted>, recorded: &EventKind) -> Option<usize> {
        let front = emitted.front()?;
        if !front.tag_is_default {
            return self.matches(&front.action, recorded).then_some(0);
        }
        let mut action = front.action.clone();
        if let (Action::CallActivity { tag, .. }, EventKind::ActivityScheduled { tag: stored, .. }) =
            (&mut action, recorded)
        {
            tag.clone_from(stored);
        }
        self.matches(&action, recorded).then_some(0)
    }

    fn describe(&self, decision: &EventKind) -> String {
        let EventKind::ActivityScheduled { name, session_id, tag, .. } = decision else {
            return decision.type_name().to_string();
        };
        let session = session_id.as_ref().map_or(String::new(), |session| format!(" on session '{session}'"));
        let tag = tag.as_ref().map_or(String::new(), |tag| format!(" with tag '{tag}'"));
        format!("activity '{name}'{session}{tag}")
    }

    fn immediate_outcome(
        &self,
        action: &Action,
        now_ms: u64,
        random: &mut dyn FnMut() -> u128,
    ) -> Option<EventKind> {
        let Action::CallActivity { name, .. } = action else { return None };
        let result = SystemCall::answer(name, now_ms, random)?;
        Some(EventKind::ActivityCompleted { result })
    }

    fn note_decision(&self, summary: &mut HistorySummary, event: &Event) {
        summary.activities.0.insert(event.event_id);
        summary.expect_outcome(Op::Activity, event.event_id);
    }

    fn note_closed(&self, summary: &mut HistorySummary, event_id: u64) {
        summary.activities.0.remove(&event_id);
    }

    fn receive(&self, execution: &Execution, _draft: &mut Draft, message: WorkItem) -> Receipt {
        let (execution_id, source, kind, failure) = match message {
            WorkItem::ActivityCompleted { execution_id, id, result, .. } => {
                (execution_id, id, EventKind::ActivityCompleted { result }, None)
            }
            WorkItem::ActivityFailed { execution_id, id, details, .. } => {
                let failure = system_failure(&details);
                (execution_id, id, EventKind::ActivityFailed { details }, failure)
            }
            _ => return Receipt::Drop,
        };
        let outcome = Outcome { op: Op::Activity, name: "completion", execution_id, source, kind, failure };
        outcome.receive(execution)
    }

    fn deliver(&self, execution: &mut Execution, event: Event) -> Result<(), Stop> {
        let (name, event_id) = (event.kind.type_name(), event.event_id);
        let Some(source) = event.source_event_id else { return Ok(()) };
        let result = match event.kind {
            EventKind::ActivityCompleted { result } => {
                if let Standing::AnotherKind(_) = execution.summary.standing(source, Op::Activity) {
                    let mismatch = Mismatch::not_an_activity(execution.identity(), event_id, source);
                    return Err(Stop::Mismatch(mismatch));
                }
                Ok(result)
            }
            EventKind::ActivityFailed { details } => Err(Box::new(details)),
            _ => return Ok(()),
        };
        execution.settle(event_id, source, Raw::Result(result), name)
    }

    fn cancellation(&self, reason: String) -> Option<EventKind> {
        Some(EventKind::ActivityCancelRequested { reason })
    }

    fn dropped_name(&self) -> &'static str {
        "activities"
    }

    fn on_drop(&self, execution: &Execution, draft: &mut Draft, event_id: u64) {
        // An activity of this turn is not sent, so there is no work item to cancel.
        if !draft.is_new(event_id) && execution.summary.activities.0.contains(&event_id) {
            draft.cancel_activity(execution.identity(), event_id);
        }
    }

    fn send(&self, execution: &Execution, draft: &mut Draft, decision: Recorded) {
        let Recorded { event_id, action, attempt, .. } = decision;
        let Action::CallActivity { name, input, session_id, tag, .. } = action else { return };
        if attempt > 1 {
            let (name, tag) = (name.clone(), tag.clone());
            draft.report.retries.push(Retry { activity_id: event_id, name, tag, attempt });
        }
        let Identity { instance, execution_id, .. } = execution.identity();
        draft.commit.worker_items.push(WorkItem::ActivityExecute {
            instance: instance.clone(),
            execution_id: *execution_id,
            id: event_id,
            name,
            input,
            session_id,
            tag,
        });
    }

    /// Cancels the activities that earlier turns sent, and notes for all open activities that the execution has ended.
    fn end(&self, closing: &mut Closing<'_>, draft: &mut Draft) {
        let status = match closing.close.status() {
            ExecutionStatus::Completed => "completed",
            ExecutionStatus::ContinuedAsNew => "continued_as_new",
            ExecutionStatus::Failed | ExecutionStatus::Running => "failed",
        };
        let reason = format!("orchestration_terminal_{status}");
        for event_id in closing.execution.summary.activities.0.clone() {
            if !draft.is_new(event_id) {
                draft.cancel_activity(closing.execution.identity(), event_id);
            }
            let note = EventKind::ActivityCancelRequested { reason: reason.clone() };
            closing.execution.record(draft, Some(event_id), note);
        }
    }
}

impl HasOutcome for Activity {
    fn send_again(&self, instance: &str, execution_id: u64, decision: &Event) -> Option<WorkItem> {
        let EventKind::ActivityScheduled { name, input, session_id, tag } = &decision.kind else { return None };
        Some(WorkItem::ActivityExecute {
            instance: instance.to_string(),
            execution_id,
            id: decision.event_id,
            name: name.clone(),
            input: input.clone(),
            session_id: session_id.clone(),
            tag: tag.clone(),
        })
    }
}
