//! Continue-as-new: the execution ends and the next one of the instance begins with an empty history.

use super::{Operation, queue};
use crate::context::OrchestrationContext;
use crate::draft::Draft;
use crate::finish::{Close, Closing};
use crate::state::Site;
use outlast_model::defect::{self, Defect};
use outlast_model::{Action, EventKind, WorkItem, limits::Limits};
use serde::Serialize;
use std::panic::Location;

/// A request to begin the next execution.
#[derive(Debug, Clone)]
pub(crate) struct Successor {
    pub(crate) input: String,
    pub(crate) version: Option<String>,
}

impl OrchestrationContext {
    /// Ends this execution and begins the next with a new input, on the version that the registry's policy names then.
    /// The future never resolves: `return ctx.continue_as_new(input).await`.
    #[track_caller]
    pub fn continue_as_new(&self, input: impl Into<String>) -> impl Future<Output = Result<String, String>> {
        self.succeed(input.into(), None, Location::caller());
        std::future::pending()
    }

    /// Continues as new with a typed input.
    #[track_caller]
    pub fn continue_as_new_typed<In: Serialize>(
        &self,
        input: &In,
    ) -> impl Future<Output = Result<String, String>> {
        self.succeed(self.encoded(input, "input of the next execution"), None, Location::caller());
        std::future::pending()
    }

    /// Continues as new on a given version of the orchestration.
    #[track_caller]
    pub fn continue_as_new_versioned(
        &self,
        version: impl Into<String>,
        input: impl Into<String>,
    ) -> impl Future<Output = Result<String, String>> {
        self.succeed(input.into(), Some(version.into()), Location::caller());
        std::future::pending()
    }

    fn succeed(&self, input: String, version: Option<String>, site: Site) {
        let mut state = self.lock();
        state.last_call = Some(("continue_as_new", site));
        let name = &self.identity().name;
        state.check_payload("input of the next execution of", name, &input);
        if state.successor.is_none() {
            state.successor = Some(Successor { input, version });
        }
    }
}

pub(crate) struct ContinueAsNew;

impl Operation for ContinueAsNew {
    fn name(&self) -> &'static str {
        "continue-as-new"
    }

    fn event(&self, _action: &Action, _execution_id: u64, _event_id: u64) -> Option<EventKind> {
        None
    }

    fn matches(&self, _action: &Action, _recorded: &EventKind) -> bool {
        false
    }

    fn describe(&self, _decision: &EventKind) -> String {
        "continue-as-new".to_string()
    }

    /// Sends the start of the next execution, with the queue messages that it takes over, and then the messages that are too
    /// large to be taken over.
    fn end(&self, closing: &mut Closing<'_>, draft: &mut Draft) {
        let Close::ContinuedAsNew { input, version } = &closing.close else { return };
        let execution = &*closing.execution;
        let (mut unread, custom_status, limits) = {
            let state = execution.context.lock();
            (state.inboxes.queues.unread(), state.custom_status.clone(), state.limits.clone())
        };
        unread.retain(|(queue, _)| queue != queue::START_NOTE_QUEUE);
        let (carried, beyond) = carry_over(unread, &limits, &mut draft.report.warnings);
        let identity = execution.identity();
        let parent = execution.opening.parent.as_ref();
        draft.commit.orchestrator_items.push(WorkItem::ContinueAsNew {
            instance: identity.instance.clone(),
            orchestration: identity.name.clone(),
            input: input.clone(),
            version: version.clone().filter(|_| !defect::is_on(Defect::SuccessorWithoutVersion)),
            parent_instance: parent.map(|parent| parent.instance.clone()),
            parent_id: parent.map(|parent| parent.event_id),
            parent_execution_id: parent.and_then(|parent| parent.execution_id),
            carry_forward_events: carried,
            initial_custom_status: custom_status,
        });
        let beyond = beyond.into_iter().map(|(name, data)| queue::message(&identity.instance, name, data));
        draft.commit.orchestrator_items.extend(beyond);
    }
}

/// An unread message: its queue and its data.
type Unread = (String, String);

/// Splits the unread messages into those that the next execution takes over and those that are sent again because they are
/// above the limit of bytes. Messages above the limit of their number are lost.
fn carry_over(
    mut unread: Vec<Unread>,
    limits: &Limits,
    warnings: &mut Vec<String>,
) -> (Vec<Unread>, Vec<Unread>) {
    let most = if defect::is_on(Defect::CarriesOneMessage) { 1 } else { limits.carry_forward_events };
    for (queue, _) in unread.drain(most.min(unread.len())..) {
        warnings.push(format!(
            "a message of queue '{queue}' is lost: continue-as-new carries over {most} unread messages; read more \
             before it, or raise limits.carry_forward_events"
        ));
    }
    let most_bytes = limits.carry_forward_bytes;
    let mut bytes = 0;
    let mut fits = |(queue, data): &Unread| {
        bytes += queue.len() + data.len();
        bytes <= most_bytes
    };
    let carried = unread.iter().take_while(|message| fits(message)).count().max(1);
    let beyond = unread.split_off(carried.min(unread.len()));
    if !beyond.is_empty() {
        warnings.push(format!(
            "{} unread messages come again behind those that wait: continue-as-new carries over {most_bytes} bytes of them; \
             read more before it, or raise limits.carry_forward_bytes",
            beyond.len()
        ));
    }
    (unread, beyond)
}
