//! Step 4: how a turn ends. Every ending of an execution goes through [`finish`]: returned, failed, cancelled, continued
//! as new, over a limit, poisoned.

use crate::context::Identity;
use crate::draft::{Draft, Ending, Recorded, Retry};
use crate::drops::Children;
use crate::ledger::Ledger;
use crate::opening::Opening;
use outlast_model::{
    Action, AppErrorKind, ErrorDetails, EventKind, ExecutionStatus, INITIAL_EXECUTION_ID, WorkItem,
};
use std::collections::BTreeMap;

/// What happens to running children when their parent ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ParentClosePolicy {
    /// Children whose future the code dropped are cancelled when it goes on or returns, and all of them when the parent
    /// is cancelled. Otherwise they run on: after continue-as-new, a panic, a replay error, a limit or poison.
    #[default]
    Contract,
    /// All children are cancelled, however the parent ends.
    Cancel,
    /// No child is cancelled in the turn that ends its parent: neither those that the code still held, nor those that it
    /// dropped in that same turn. A child that was scheduled in that turn is not started.
    Abandon,
}

/// How an execution ends.
pub(crate) enum Close {
    Completed(String),
    Failed(ErrorDetails),
    Cancelled(String),
    ContinuedAsNew { input: String, version: Option<String> },
}

/// What an ending needs to know.
pub(crate) struct Closing<'a> {
    pub(crate) who: &'a Identity,
    pub(crate) opening: &'a Opening,
    pub(crate) ledger: &'a mut Ledger,
    /// Waits without an outcome, by event.
    pub(crate) open_signals: Vec<u64>,
    pub(crate) open_queues: Vec<u64>,
    /// Children that the code dropped in this turn.
    pub(crate) dropped_children: Children,
    /// For the successor.
    pub(crate) unread: Vec<(String, String)>,
    pub(crate) custom_status: Option<String>,
    pub(crate) policy: ParentClosePolicy,
    pub(crate) carry_limit: usize,
    pub(crate) carry_bytes: usize,
}

pub(crate) fn finish(mut closing: Closing<'_>, draft: &mut Draft, close: Close) {
    closing.close_waits(draft);
    let (kind, status, output, reason) = closing.terminal_event(&close);
    // Before the terminal event makes them closed.
    let children = closing.children_to_cancel(draft, &close);
    let abandoned = closing.ledger.abandoned_children(draft.now_ms, |event_id| !draft.is_new(event_id));
    draft.report.children_ended.extend(abandoned);
    closing.record(draft, None, kind);
    closing.cancel_activities(draft, reason);
    detached_starts(draft);
    closing.start_new_children(draft, &children);
    cancel_children(draft, children);
    closing.tell(draft, &close);
    draft.commit.metadata.status = Some(status.to_string());
    draft.commit.metadata.output = Some(output);
    draft.report.age_ms = draft.now_ms.saturating_sub(closing.ledger.started_at_ms);
    draft.report.ended = Some(match close {
        Close::Completed(_) => Ending::Completed,
        Close::Failed(details) => Ending::Failed(details),
        Close::Cancelled(reason) => Ending::Failed(cancelled(reason)),
        Close::ContinuedAsNew { .. } => Ending::ContinuedAsNew,
    });
}

fn cancelled(reason: String) -> ErrorDetails {
    let kind = AppErrorKind::Cancelled { reason };
    ErrorDetails::Application { kind, message: String::new(), retryable: false }
}

impl Closing<'_> {
    fn record(&mut self, draft: &mut Draft, source: Option<u64>, kind: EventKind) {
        let event = draft.event(self.who, self.ledger.last_event_id + 1, source, kind);
        self.ledger.note(&event);
        draft.commit.history_delta.push(event);
    }

    fn close_waits(&mut self, draft: &mut Draft) {
        let reason = || "orchestration_terminal".to_string();
        for event_id in std::mem::take(&mut self.open_signals) {
            let note = EventKind::ExternalSubscribedCancelled { reason: reason() };
            self.record(draft, Some(event_id), note);
        }
        for event_id in std::mem::take(&mut self.open_queues) {
            let note = EventKind::QueueSubscriptionCancelled { reason: reason() };
            self.record(draft, Some(event_id), note);
        }
    }

    /// Event, status, stored output, and the word for activities that are cut off.
    fn terminal_event(&self, close: &Close) -> (EventKind, ExecutionStatus, String, &'static str) {
        match close {
            Close::Completed(output) => {
                let event = EventKind::OrchestrationCompleted { output: output.clone() };
                (event, ExecutionStatus::Completed, output.clone(), "completed")
            }
            Close::Failed(details) => {
                let event = EventKind::OrchestrationFailed { details: details.clone() };
                (event, ExecutionStatus::Failed, details.display_message(), "failed")
            }
            Close::Cancelled(reason) => {
                let details = cancelled(reason.clone());
                let output = details.display_message();
                (EventKind::OrchestrationFailed { details }, ExecutionStatus::Failed, output, "failed")
            }
            Close::ContinuedAsNew { input, .. } => {
                let event = EventKind::OrchestrationContinuedAsNew { input: input.clone() };
                (event, ExecutionStatus::ContinuedAsNew, input.clone(), "continued_as_new")
            }
        }
    }

    /// Activities that are in a queue or run somewhere. Those of this turn never get there.
    fn cancel_activities(&mut self, draft: &mut Draft, reason: &str) {
        for event_id in self.ledger.open_activities.clone() {
            if !draft.is_new(event_id) {
                draft.cancel_activity(self.who, event_id);
            }
            let reason = format!("orchestration_terminal_{reason}");
            self.record(draft, Some(event_id), EventKind::ActivityCancelRequested { reason });
        }
    }

    /// Children that the code dropped, children that a cancelled parent still has, and with the policy all others whose
    /// start was committed before.
    fn children_to_cancel(&self, draft: &Draft, close: &Close) -> Vec<Cancelled> {
        let of = |reason| move |(event_id, child): (&u64, &String)| (*event_id, child.clone(), reason);
        let open = self.ledger.open_children.iter();
        let dropped = self.dropped_children.iter().map(of(DROPPED_CHILD));
        match (self.policy, close) {
            (ParentClosePolicy::Abandon, _) => Vec::new(),
            // The child records the first reason.
            (_, Close::Cancelled(_)) => open.map(of("parent canceled")).chain(dropped).collect(),
            (ParentClosePolicy::Contract, _) => dropped.collect(),
            (ParentClosePolicy::Cancel, _) => {
                let sent = open.filter(|(event_id, _)| !draft.is_new(**event_id));
                dropped.chain(sent.map(of("parent closed"))).collect()
            }
        }
    }

    /// A child of this turn that is cancelled is started by the same commit: it exists, and ends as cancelled. Without
    /// the start the cancellation would wait for an instance that never comes (C2).
    fn start_new_children(&self, draft: &mut Draft, cancelled: &[Cancelled]) {
        let children: BTreeMap<u64, &String> =
            cancelled.iter().map(|(event_id, child, _)| (*event_id, child)).collect();
        for Recorded { event_id, action, .. } in &draft.recorded {
            let child = children.get(event_id).copied();
            if let (Some(child), Action::StartSubOrchestration { name, .. }) = (child, action) {
                draft.report.children_started.push(name.clone());
                let start = work(self.who, *event_id, action.clone(), Some(child));
                draft.commit.orchestrator_items.extend(start);
            }
        }
    }

    /// The parent learns how it ended; a successor is started instead.
    fn tell(&mut self, draft: &mut Draft, close: &Close) {
        let parent = self.opening.parent.as_ref();
        let mut again = Vec::new();
        let message = match close {
            Close::Completed(output) => parent.map(|parent| parent.success(output.clone())),
            Close::Failed(details) => parent.map(|parent| parent.failure(details.clone())),
            Close::Cancelled(reason) => parent.map(|parent| parent.failure(cancelled(reason.clone()))),
            Close::ContinuedAsNew { input, version } => {
                again = self.beyond_the_bytes(draft);
                Some(self.successor(input.clone(), version.clone()))
            }
        };
        draft.commit.orchestrator_items.extend(message.into_iter().chain(again));
    }

    /// Leaves as many unread messages as are carried over. Returns those that come again as messages, because they are too large to
    /// be carried over with the others; those that are too many are lost.
    fn beyond_the_bytes(&mut self, draft: &mut Draft) -> Vec<WorkItem> {
        for (queue, _) in self.unread.drain(self.carry_limit.min(self.unread.len())..) {
            draft.report.warnings.push(format!(
                "a message of queue '{queue}' is lost: continue-as-new carries over {} unread messages; read more \
                 before it, or raise limits.carry_forward_events",
                self.carry_limit
            ));
        }
        let mut bytes = 0;
        let mut fits = |(queue, data): &(String, String)| {
            bytes += queue.len() + data.len();
            bytes <= self.carry_bytes
        };
        let carried = self.unread.iter().take_while(|message| fits(message)).count().max(1);
        let beyond: Vec<_> = self.unread.drain(carried.min(self.unread.len())..).collect();
        if !beyond.is_empty() {
            draft.report.warnings.push(format!(
                "{} unread messages come again behind those that wait: continue-as-new carries over {} bytes of them; read more \
                 before it, or raise limits.carry_forward_bytes",
                beyond.len(),
                self.carry_bytes
            ));
        }
        let instance = &self.who.instance;
        beyond
            .into_iter()
            .map(|(name, data)| WorkItem::QueueMessage { instance: instance.clone(), name, data })
            .collect()
    }

    fn successor(&mut self, input: String, version: Option<String>) -> WorkItem {
        let carried = std::mem::take(&mut self.unread);
        let parent = self.opening.parent.as_ref();
        WorkItem::ContinueAsNew {
            instance: self.who.instance.clone(),
            orchestration: self.who.name.clone(),
            input,
            version,
            parent_instance: parent.map(|parent| parent.instance.clone()),
            parent_id: parent.map(|parent| parent.event_id),
            parent_execution_id: parent.and_then(|parent| parent.execution_id),
            carry_forward_events: carried,
            initial_custom_status: self.custom_status.take(),
        }
    }
}

/// A child to be cancelled: its scheduling event, its instance, the reason.
type Cancelled = (u64, String, &'static str);

fn cancel_children(draft: &mut Draft, children: Vec<Cancelled>) {
    let cancel = children.into_iter().map(|(_, instance, reason)| cancel_child(instance, reason));
    draft.commit.orchestrator_items.extend(cancel);
}

const DROPPED_CHILD: &str = "parent dropped sub-orchestration future";

fn cancel_child(instance: String, reason: &str) -> WorkItem {
    WorkItem::CancelInstance { instance, reason: reason.to_string() }
}

/// A turn after which the code goes on waiting: everything that it asked for is sent, except what it dropped again. A
/// child that it dropped again is started and cancelled.
pub(crate) fn go_on(
    who: &Identity,
    draft: &mut Draft,
    children: &Children,
    dropped_children: &Children,
    is_dropped: impl Fn(Option<u64>) -> bool,
) {
    for Recorded { event_id, token, action, attempt } in std::mem::take(&mut draft.recorded) {
        let child = children.get(&event_id).or_else(|| dropped_children.get(&event_id));
        if is_dropped(token) && child.is_none() {
            continue;
        }
        if let Action::StartSubOrchestration { name, .. } = &action {
            draft.report.children_started.push(name.clone());
        }
        if let Action::CallActivity { name, tag, .. } = &action
            && attempt > 1
        {
            let (name, tag) = (name.clone(), tag.clone());
            draft.report.retries.push(Retry { activity_id: event_id, name, tag, attempt });
        }
        let item = work(who, event_id, action, child);
        match item {
            Some(item @ WorkItem::ActivityExecute { .. }) => draft.commit.worker_items.push(item),
            Some(item) => draft.commit.orchestrator_items.push(item),
            None => {}
        }
    }
    let cancel = dropped_children.values().map(|child| cancel_child(child.clone(), DROPPED_CHILD));
    draft.commit.orchestrator_items.extend(cancel);
}

/// Detached orchestrations are started whatever becomes of the one that asked for them.
fn detached_starts(draft: &mut Draft) {
    for recorded in &draft.recorded {
        if let Action::StartOrchestrationDetached { name, version, instance, input, .. } = &recorded.action {
            draft.commit.orchestrator_items.push(detached(name, version, instance, input));
        }
    }
}

fn detached(name: &str, version: &Option<String>, instance: &str, input: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_string(),
        orchestration: name.to_string(),
        input: input.to_string(),
        version: version.clone(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: INITIAL_EXECUTION_ID,
    }
}

/// What a decision puts into a queue. `child` is the instance of a child.
fn work(who: &Identity, event_id: u64, action: Action, child: Option<&String>) -> Option<WorkItem> {
    let instance = who.instance.clone();
    let execution_id = who.execution_id;
    match action {
        Action::CallActivity { name, input, session_id, tag, .. } => Some(WorkItem::ActivityExecute {
            instance,
            execution_id,
            id: event_id,
            name,
            input,
            session_id,
            tag,
        }),
        Action::CreateTimer { fire_at_ms, .. } => {
            Some(WorkItem::TimerFired { instance, execution_id, id: event_id, fire_at_ms })
        }
        Action::StartSubOrchestration { name, version, input, .. } => Some(WorkItem::StartOrchestration {
            instance: child?.clone(),
            orchestration: name,
            input,
            version,
            parent_instance: Some(instance),
            parent_id: Some(event_id),
            parent_execution_id: Some(execution_id),
            execution_id: INITIAL_EXECUTION_ID,
        }),
        Action::StartOrchestrationDetached { name, version, instance, input, .. } => {
            Some(detached(&name, &version, &instance, &input))
        }
        _ => None,
    }
}
