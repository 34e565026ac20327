//! Child orchestrations: the execution that schedules a child receives its outcome.

use super::{HasOutcome, Op, Operation};
use crate::context::OrchestrationContext;
use crate::draft::{ChildEnded, Draft, Recorded};
use crate::execution::{Execution, Stop};
use crate::finish::{Close, Closing};
use crate::future::{DurableFuture, Raw};
use crate::history_summary::HistorySummary;
use crate::receive::{Outcome, Receipt, system_failure};
use crate::state::{Site, State};
use outlast_model::{
    Action, AppErrorKind, ErrorDetails, Event, EventKind, INITIAL_EXECUTION_ID, SUB_ORCH_AUTO_PREFIX,
    ScheduleKind, WorkItem, build_child_instance_id, check_instance_id, is_auto_generated_sub_orch_id,
};
use serde::{Serialize, de::DeserializeOwned};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::Location;

/// The placeholder in a decision for an id that is generated with its event.
const GENERATED: &str = "sub::pending_";

impl OrchestrationContext {
    /// Runs a child orchestration under a generated id.
    #[track_caller]
    pub fn schedule_sub_orchestration(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        self.start_child(name.into(), None, None, input.into(), Location::caller())
    }

    /// Runs a child orchestration under a given id. The future returns an error if an instance with the id exists.
    #[track_caller]
    pub fn schedule_sub_orchestration_with_id(
        &self,
        name: impl Into<String>,
        instance: impl Into<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        self.start_child(name.into(), None, Some(instance.into()), input.into(), Location::caller())
    }

    /// Runs a given version of a child orchestration under a generated id.
    #[track_caller]
    pub fn schedule_sub_orchestration_versioned(
        &self,
        name: impl Into<String>,
        version: Option<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        self.start_child(name.into(), version, None, input.into(), Location::caller())
    }

    /// Runs a given version of a child orchestration under a given id.
    #[track_caller]
    pub fn schedule_sub_orchestration_versioned_with_id(
        &self,
        name: impl Into<String>,
        version: Option<String>,
        instance: impl Into<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        self.start_child(name.into(), version, Some(instance.into()), input.into(), Location::caller())
    }

    /// Runs a child orchestration with typed input and output.
    #[track_caller]
    pub fn schedule_sub_orchestration_typed<In: Serialize, Out: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
        input: &In,
    ) -> DurableFuture<Result<Out, String>> {
        let input = self.encoded(input, "child input");
        self.decoded(self.start_child(name.into(), None, None, input, Location::caller()))
    }

    /// Runs a child orchestration with typed input and output under a given id.
    #[track_caller]
    pub fn schedule_sub_orchestration_with_id_typed<In: Serialize, Out: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
        instance: impl Into<String>,
        input: &In,
    ) -> DurableFuture<Result<Out, String>> {
        let input = self.encoded(input, "child input");
        self.decoded(self.start_child(name.into(), None, Some(instance.into()), input, Location::caller()))
    }

    fn start_child(
        &self,
        name: String,
        version: Option<String>,
        instance: Option<String>,
        input: String,
        site: Site,
    ) -> DurableFuture<Result<String, String>> {
        self.start_child_as(name, version, instance, input, site, Raw::into_result)
    }

    /// [`OrchestrationContext::start_child`] with another form of the outcome.
    pub(crate) fn start_child_as<T: 'static>(
        &self,
        name: String,
        version: Option<String>,
        instance: Option<String>,
        input: String,
        site: Site,
        read: impl FnOnce(Raw) -> T + Send + 'static,
    ) -> DurableFuture<T> {
        let mut state = self.lock();
        let token = match instance.as_deref().and_then(refused) {
            Some(refused) => state.answer(Op::Child, refused, site),
            None => {
                state.check_name("orchestration name", &name);
                state.check_payload("input of child", &name, &input);
                let instance = instance.unwrap_or_else(|| GENERATED.to_string());
                let action =
                    Action::StartSubOrchestration { scheduling_event_id: 0, name, version, instance, input };
                state.decide_with_future(Op::Child, None, action, "schedule_sub_orchestration", site)
            }
        };
        drop(state);
        DurableFuture::new(self, token, ScheduleKind::SubOrchestration { token }, read)
    }
}

impl State {
    /// Gives a child that has no event yet an id. A refused id becomes the outcome of the child, which is not started. False if
    /// the child has its event.
    pub(crate) fn name_child(&mut self, token: u64, id: String) -> bool {
        let Some(position) = self.emitted.iter().rposition(|emitted| emitted.token == Some(token)) else {
            // A decision after a violation is not emitted, so there is no child to name.
            return self.violation.is_some();
        };
        if let Some(refused) = refused(&id) {
            self.emitted.remove(position);
            self.settle(token, refused);
        } else if let Some(Action::StartSubOrchestration { instance, .. }) =
            self.emitted.get_mut(position).map(|emitted| &mut emitted.action)
        {
            *instance = id;
        }
        true
    }

    /// Selects the version of a child that has no event yet; false if the child has one.
    pub(crate) fn select_child_version(&mut self, token: u64, selected: String) -> bool {
        let found = self.emitted.iter_mut().rev().find(|emitted| emitted.token == Some(token));
        match found.map(|emitted| &mut emitted.action) {
            Some(Action::StartSubOrchestration { version, .. }) => {
                *version = Some(selected);
                true
            }
            _ => self.violation.is_some(),
        }
    }
}

/// The outcome of a child whose given id is not accepted.
fn refused(instance: &str) -> Option<Raw> {
    let (kind, retryable) = (AppErrorKind::OrchestrationFailed, false);
    let message = refusal(instance)?;
    Some(Raw::Result(Err(Box::new(ErrorDetails::Application { kind, message, retryable }))))
}

/// The error for a given id that is not accepted.
fn refusal(instance: &str) -> Option<String> {
    if is_auto_generated_sub_orch_id(instance) {
        return Some(format!(
            "sub-orchestration instance id '{instance}' starts with the reserved marker 'sub::', which the runtime \
             uses to mark auto-generated child ids; use an id that does not begin with it"
        ));
    }
    check_instance_id(instance).err().map(|error| format!("sub-orchestration {error}"))
}

/// The policy for running children when their parent ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ParentClosePolicy {
    /// Children whose future the code dropped are cancelled when the parent goes on or returns. All children are cancelled
    /// when the parent is cancelled. After continue-as-new, a panic, a replay error, a limit or poison, children run on.
    #[default]
    Contract,
    /// All children are cancelled, however the parent ends.
    Cancel,
    /// No child is cancelled in the turn that ends its parent: neither a child that the code awaited, nor a child that it
    /// dropped in that same turn. A child that was scheduled in that turn is not started.
    Abandon,
}

/// Reason of the cancellation of a child whose future the code dropped.
const DROPPED_CHILD: &str = "parent dropped sub-orchestration future";

/// The children of an execution, by scheduling event.
#[derive(Debug, Default)]
pub(crate) struct Children {
    /// Children without an outcome whose future is not noted as dropped.
    open: BTreeSet<u64>,
    /// Children without an outcome, dropped ones too.
    unanswered: BTreeMap<u64, Scheduled>,
}

/// A child as its parent scheduled it.
#[derive(Debug)]
struct Scheduled {
    instance: String,
    name: String,
    scheduled_at_ms: u64,
}

impl Scheduled {
    fn ended(&self, outcome: &'static str, now_ms: u64) -> ChildEnded {
        let took_ms = now_ms.saturating_sub(self.scheduled_at_ms);
        ChildEnded { name: self.name.clone(), outcome, took_ms }
    }
}

impl Children {
    /// Whether no child is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    fn instance(&self, event_id: u64) -> Option<&str> {
        self.unanswered.get(&event_id).map(|child| child.instance.as_str())
    }

    /// The report about a child whose outcome is received. Asked before the outcome is noted.
    fn ended(&self, event_id: u64, kind: &EventKind, now_ms: u64) -> Option<ChildEnded> {
        let outcome = match kind {
            EventKind::SubOrchestrationCompleted { .. } => "completed",
            EventKind::SubOrchestrationFailed {
                details: ErrorDetails::Application { kind: AppErrorKind::Cancelled { .. }, .. },
            } => "cancelled",
            _ => "failed",
        };
        Some(self.unanswered.get(&event_id)?.ended(outcome, now_ms))
    }
}

pub(crate) struct Child;

impl Operation for Child {
    fn name(&self) -> &'static str {
        "suborchestration"
    }

    fn event(&self, action: &Action, execution_id: u64, event_id: u64) -> Option<EventKind> {
        let Action::StartSubOrchestration { name, instance, input, .. } = action else { return None };
        let instance = if instance == GENERATED {
            match execution_id {
                INITIAL_EXECUTION_ID => format!("{SUB_ORCH_AUTO_PREFIX}{event_id}"),
                later => format!("{SUB_ORCH_AUTO_PREFIX}{later}_{event_id}"),
            }
        } else {
            instance.clone()
        };
        Some(EventKind::SubOrchestrationScheduled { name: name.clone(), instance, input: input.clone() })
    }

    /// The stored id is kept, so that the scheme for generated ids may change.
    fn matches(&self, action: &Action, recorded: &EventKind) -> bool {
        match (action, recorded) {
            (
                Action::StartSubOrchestration { name, input, .. },
                EventKind::SubOrchestrationScheduled { name: recorded_name, input: recorded_input, .. },
            ) => name == recorded_name && input == recorded_input,
            _ => false,
        }
    }

    fn describe(&self, decision: &EventKind) -> String {
        match decision {
            EventKind::SubOrchestrationScheduled { name, .. } => format!("a child orchestration '{name}'"),
            other => other.type_name().to_string(),
        }
    }

    /// A generated id contains the ids of all ancestors, and stores limit the length of an id.
    fn check(&self, execution: &Execution, decision: &EventKind) -> Result<(), Stop> {
        let EventKind::SubOrchestrationScheduled { instance, .. } = decision else { return Ok(()) };
        let id = build_child_instance_id(execution.instance(), instance);
        check_instance_id(&id).map_err(|error| {
            execution.context.lock().violation =
                Some(format!("child orchestration: {error}; give it an id of its own"));
            Stop::Limit
        })
    }

    fn note_decision(&self, summary: &mut HistorySummary, event: &Event) {
        let EventKind::SubOrchestrationScheduled { name, instance, .. } = &event.kind else { return };
        let instance = build_child_instance_id(&event.instance_id, instance);
        let child = Scheduled { instance, name: name.clone(), scheduled_at_ms: event.timestamp_ms };
        summary.children.open.insert(event.event_id);
        summary.children.unanswered.insert(event.event_id, child);
        summary.expect_outcome(Op::Child, event.event_id);
    }

    fn note_closed(&self, summary: &mut HistorySummary, event_id: u64) {
        summary.children.open.remove(&event_id);
    }

    fn note_answered(&self, summary: &mut HistorySummary, event_id: u64) {
        summary.children.unanswered.remove(&event_id);
    }

    fn receive(&self, execution: &Execution, draft: &mut Draft, message: WorkItem) -> Receipt {
        let (execution_id, source, kind, failure) = match message {
            WorkItem::SubOrchCompleted { parent_execution_id, parent_id, result, .. } => {
                (parent_execution_id, parent_id, EventKind::SubOrchestrationCompleted { result }, None)
            }
            WorkItem::SubOrchFailed { parent_execution_id, parent_id, details, .. } => {
                let failure = system_failure(&details);
                (parent_execution_id, parent_id, EventKind::SubOrchestrationFailed { details }, failure)
            }
            _ => return Receipt::Drop,
        };
        let name = "sub-orchestration";
        let outcome = Outcome { op: Op::Child, name, execution_id, source, kind, failure };
        let receipt = outcome.receive(execution);
        if let Receipt::Record { kind, .. } = &receipt {
            let ended = execution.summary.children.ended(source, kind, draft.now_ms);
            draft.report.children_ended.extend(ended);
        }
        receipt
    }

    fn deliver(&self, execution: &mut Execution, event: Event) -> Result<(), Stop> {
        let (name, event_id) = (event.kind.type_name(), event.event_id);
        let Some(source) = event.source_event_id else { return Ok(()) };
        let result = match event.kind {
            EventKind::SubOrchestrationCompleted { result } => Ok(result),
            EventKind::SubOrchestrationFailed { details } => Err(Box::new(details)),
            _ => return Ok(()),
        };
        execution.settle(event_id, source, Raw::Result(result), name)
    }

    fn cancellation(&self, reason: String) -> Option<EventKind> {
        Some(EventKind::SubOrchestrationCancelRequested { reason })
    }

    fn dropped_name(&self) -> &'static str {
        "sub-orchestrations"
    }

    fn after_drop(&self, execution: &Execution, draft: &mut Draft, event_id: u64) {
        let instance = execution.summary.children.instance(event_id).map(str::to_string);
        let cancel = instance.map(|instance| cancel(instance, DROPPED_CHILD));
        draft.commit.orchestrator_items.extend(cancel);
    }

    /// The child is started and cancelled: without the start the cancellation would wait for an instance that no message
    /// starts (C2).
    fn is_sent_if_dropped(&self) -> bool {
        true
    }

    fn send(&self, execution: &Execution, draft: &mut Draft, decision: Recorded) {
        start(execution, draft, decision.event_id, decision.action);
    }

    fn end(&self, closing: &mut Closing<'_>, draft: &mut Draft) {
        let execution = &*closing.execution;
        let unanswered = &execution.summary.children.unanswered;
        let sent = unanswered.iter().filter(|(event_id, _)| !draft.is_new(**event_id));
        let abandoned: Vec<_> = sent.map(|(_, child)| child.ended("abandoned", draft.now_ms)).collect();
        draft.report.children_ended.extend(abandoned);
        let cancelled = children_to_cancel(closing, draft);
        let ids: BTreeSet<u64> = cancelled.iter().map(|(event_id, _)| *event_id).collect();
        // A child of this turn that is cancelled is started by the same commit: it exists, and ends as cancelled (C2).
        let decisions = std::mem::take(&mut draft.recorded);
        for decision in decisions.iter().filter(|decision| ids.contains(&decision.event_id)) {
            start(execution, draft, decision.event_id, decision.action.clone());
        }
        draft.recorded = decisions;
        for (event_id, reason) in cancelled {
            let instance = execution.summary.children.instance(event_id).map(str::to_string);
            draft.commit.orchestrator_items.extend(instance.map(|instance| cancel(instance, reason)));
        }
    }
}

impl HasOutcome for Child {
    fn send_again(&self, _instance: &str, _execution_id: u64, _decision: &Event) -> Option<WorkItem> {
        None
    }
}

/// The children that the end of their parent cancels, by scheduling event, with the reason: children that the code dropped
/// in this turn, all open children of a cancelled parent, and with the policy `Cancel` all children that earlier turns sent.
fn children_to_cancel(closing: &Closing<'_>, draft: &Draft) -> Vec<(u64, &'static str)> {
    let children = &closing.execution.summary.children;
    let open = children.open.iter().copied();
    let dropped = draft.dropped.iter().filter(|(op, event_id)| {
        // A child that has its outcome needs no cancellation.
        *op == Op::Child && children.unanswered.contains_key(event_id)
    });
    let dropped = dropped.map(|(_, event_id)| (*event_id, DROPPED_CHILD));
    match (closing.policy, &closing.close) {
        (ParentClosePolicy::Abandon, _) => Vec::new(),
        // A child records the first reason that it receives.
        (_, Close::Cancelled(_)) => open.map(|event_id| (event_id, "parent canceled")).chain(dropped).collect(),
        (ParentClosePolicy::Contract, _) => dropped.collect(),
        (ParentClosePolicy::Cancel, _) => {
            let sent = open.filter(|event_id| !draft.is_new(*event_id));
            dropped.chain(sent.map(|event_id| (event_id, "parent closed"))).collect()
        }
    }
}

fn start(execution: &Execution, draft: &mut Draft, event_id: u64, action: Action) {
    let Action::StartSubOrchestration { name, version, input, .. } = action else { return };
    let Some(instance) = execution.summary.children.instance(event_id) else { return };
    draft.report.children_started.push(name.clone());
    let parent = execution.identity();
    draft.commit.orchestrator_items.push(WorkItem::StartOrchestration {
        instance: instance.to_string(),
        orchestration: name,
        input,
        version,
        parent_instance: Some(parent.instance.clone()),
        parent_id: Some(event_id),
        parent_execution_id: Some(parent.execution_id),
        execution_id: INITIAL_EXECUTION_ID,
    });
}

fn cancel(instance: String, reason: &str) -> WorkItem {
    WorkItem::CancelInstance { instance, reason: reason.to_string() }
}
