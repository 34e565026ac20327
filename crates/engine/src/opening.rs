//! Before a turn: the execution that a fetched batch belongs to, and the start of that execution.
//!
//! | history | start in the batch | result |
//! |---|---|---|
//! | none | any | the first start begins execution 1 |
//! | none | none | the batch cannot be processed |
//! | running | any | the execution goes on; starts are ignored, and their parents get a failure |
//! | continued as new | of the successor | execution + 1 begins |
//! | continued as new | none | the batch waits for the start of the successor |
//! | completed, failed | any | the batch is dropped; parents of starts get a failure |

use outlast_model::{AppErrorKind, ErrorDetails, Event, EventKind, WorkItem};

/// The start of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// Name of the orchestration.
    pub name: String,
    /// Version, if the start or the history names one.
    pub version: Option<String>,
    /// Input.
    pub input: String,
    /// The parent that waits for the outcome.
    pub parent: Option<ParentLink>,
    /// Unread queue messages of the previous execution.
    pub carried: Vec<(String, String)>,
    /// Custom status at the end of the previous execution.
    pub custom_status: Option<String>,
}

/// The parent of a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParentLink {
    /// The instance of the parent.
    pub instance: String,
    /// The event of the parent that scheduled the child.
    pub event_id: u64,
    /// The execution of the parent that scheduled the child; missing in old data.
    pub execution_id: Option<u64>,
}

/// The end of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The orchestration returned or failed.
    Finished,
    /// The orchestration continued as new.
    Continued {
        /// Input of the successor.
        input: String,
    },
}

/// The state of an instance before a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Past {
    /// The start of the current execution; `None` for an instance without history.
    pub opening: Option<Opening>,
    /// The end of the current execution, if it has ended.
    pub ended: Option<Ended>,
}

impl Past {
    /// Reads a history.
    pub fn of_history(history: &[Event]) -> Self {
        let start = history.iter().rposition(|event| Opening::of_event(&event.kind).is_some());
        let Some(start) = start else { return Self::default() };
        let mut ended = None;
        for event in &history[start..] {
            match &event.kind {
                EventKind::OrchestrationContinuedAsNew { input } if ended.is_none() => {
                    ended = Some(Ended::Continued { input: input.clone() });
                }
                // Older runtimes recorded a poisoned successor as a failure after the continuation.
                EventKind::OrchestrationCompleted { .. } | EventKind::OrchestrationFailed { .. } => {
                    ended = Some(Ended::Finished);
                    break;
                }
                _ => {}
            }
        }
        Self { opening: Opening::of_event(&history[start].kind), ended }
    }
}

impl Opening {
    /// Reads a start event; `None` for other events.
    pub fn of_event(kind: &EventKind) -> Option<Self> {
        let EventKind::OrchestrationStarted {
            name,
            version,
            input,
            parent_instance,
            parent_id,
            parent_execution_id,
            carry_forward_events,
            initial_custom_status,
        } = kind
        else {
            return None;
        };
        Some(Self {
            name: name.clone(),
            // Stores write 0.0.0 for a missing version.
            version: Some(version.clone()).filter(|version| version != "0.0.0"),
            input: input.clone(),
            parent: parent_link(parent_instance, parent_id, parent_execution_id),
            carried: carry_forward_events.clone().unwrap_or_default(),
            custom_status: initial_custom_status.clone(),
        })
    }

    fn of_message(message: &WorkItem) -> Option<Self> {
        match message {
            WorkItem::StartOrchestration {
                orchestration,
                input,
                version,
                parent_instance,
                parent_id,
                parent_execution_id,
                ..
            } => Some(Self {
                name: orchestration.clone(),
                version: version.clone(),
                input: input.clone(),
                parent: parent_link(parent_instance, parent_id, parent_execution_id),
                carried: Vec::new(),
                custom_status: None,
            }),
            WorkItem::ContinueAsNew {
                orchestration,
                input,
                version,
                parent_instance,
                parent_id,
                parent_execution_id,
                carry_forward_events,
                initial_custom_status,
                ..
            } => Some(Self {
                name: orchestration.clone(),
                version: version.clone(),
                input: input.clone(),
                parent: parent_link(parent_instance, parent_id, parent_execution_id),
                carried: carry_forward_events.clone(),
                custom_status: initial_custom_status.clone(),
            }),
            _ => None,
        }
    }

    /// The start event.
    pub(crate) fn event(&self) -> EventKind {
        let parent = self.parent.as_ref();
        EventKind::OrchestrationStarted {
            name: self.name.clone(),
            version: self.version.clone().unwrap_or_else(|| "0.0.0".to_string()),
            input: self.input.clone(),
            parent_instance: parent.map(|parent| parent.instance.clone()),
            parent_id: parent.map(|parent| parent.event_id),
            parent_execution_id: parent.and_then(|parent| parent.execution_id),
            carry_forward_events: Some(self.carried.clone()).filter(|carried| !carried.is_empty()),
            initial_custom_status: self.custom_status.clone(),
        }
    }
}

fn parent_link(
    instance: &Option<String>,
    event_id: &Option<u64>,
    execution_id: &Option<u64>,
) -> Option<ParentLink> {
    Some(ParentLink { instance: instance.clone()?, event_id: (*event_id)?, execution_id: *execution_id })
}

/// The result of [`admit`].
#[derive(Debug, PartialEq, Eq)]
pub enum Admission {
    /// The batch runs a turn.
    Run(Box<Admitted>),
    /// The instance has ended: the batch is dropped, and these messages are sent.
    Ended(Vec<WorkItem>),
    /// The start of the successor is not in the batch. A turn that ends the instance for this reason sends these messages.
    SuccessorMissing(Vec<WorkItem>),
    /// The instance has no history, and the batch has no start.
    Nameless,
}

/// A batch that belongs to an execution.
#[derive(Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The execution.
    pub execution_id: u64,
    /// The start of the execution.
    pub opening: Opening,
    /// Whether the execution begins with this batch.
    pub is_new: bool,
    /// The messages of the batch without its starts, in order.
    pub messages: Vec<WorkItem>,
    /// Failures for parents whose child was not started.
    pub notices: Vec<WorkItem>,
    /// Number of ignored starts.
    pub ignored_starts: usize,
}

impl Admitted {
    /// Whether the execution begins with this batch and the batch cancels it.
    pub fn is_cancelled_at_start(&self) -> bool {
        self.is_new && self.messages.iter().any(|message| matches!(message, WorkItem::CancelInstance { .. }))
    }
}

/// Assigns a fetched batch to an execution. `current` is the execution that the store named with the batch.
pub fn admit(instance: &str, current: u64, past: &Past, messages: Vec<WorkItem>) -> Admission {
    let (mut starts, mut rest) = (Vec::new(), Vec::new());
    for message in messages {
        match &message {
            WorkItem::StartOrchestration { .. } | WorkItem::ContinueAsNew { .. } => starts.push(message),
            _ => rest.push(message),
        }
    }
    let successor = starts.iter().position(|start| matches!(start, WorkItem::ContinueAsNew { .. }));
    let (execution_id, begins_with) = match (&past.opening, &past.ended) {
        (None, _) => match (successor, starts.is_empty()) {
            (_, true) => return Admission::Nameless,
            // Without history, a start and a successor's start can only be remains of a deleted instance.
            (Some(at), _) => (current, Some(starts.remove(at))),
            (None, false) => (current, Some(starts.remove(0))),
        },
        (Some(_), Some(Ended::Finished)) => {
            return Admission::Ended(notices(instance, past, &starts));
        }
        (Some(_), Some(Ended::Continued { .. })) => match successor {
            Some(at) => (current + 1, Some(starts.remove(at))),
            None => return Admission::SuccessorMissing(notices(instance, past, &starts)),
        },
        (Some(_), None) => (current, None),
    };
    let begun = begins_with.as_ref().and_then(Opening::of_message);
    let opened = Past { opening: begun.clone().or_else(|| past.opening.clone()), ended: None };
    let Some(opening) = opened.opening.clone() else { return Admission::Nameless };
    Admission::Run(Box::new(Admitted {
        execution_id,
        is_new: begun.is_some(),
        messages: rest,
        notices: notices(instance, &opened, &starts),
        ignored_starts: starts.len(),
        opening,
    }))
}

/// Failures for parents whose child id is taken. A start that is delivered twice is not a collision: its parent gets the
/// outcome from the commit that ends the child, and a failure now could overtake that outcome.
fn notices(instance: &str, past: &Past, starts: &[WorkItem]) -> Vec<WorkItem> {
    let terminal = past.ended.is_some();
    let own = past.opening.as_ref().and_then(|opening| opening.parent.as_ref());
    let asking = starts.iter().filter(|start| matches!(start, WorkItem::StartOrchestration { .. }));
    let links = asking.filter_map(|start| Opening::of_message(start)?.parent);
    let collided = links.filter(|link| own != Some(link) || link.execution_id.is_none());
    let suffix = if terminal { " and is terminal" } else { "" };
    let details = ErrorDetails::Application {
        kind: AppErrorKind::OrchestrationFailed,
        message: format!("sub-orchestration instance id '{instance}' already exists{suffix}"),
        retryable: false,
    };
    collided.map(|link| link.failure(details.clone())).collect()
}

/// In a message to a parent: the execution of the parent is not known here and must be read from the store.
pub const UNKNOWN_EXECUTION: u64 = 0;

impl ParentLink {
    pub(crate) fn failure(&self, details: ErrorDetails) -> WorkItem {
        WorkItem::SubOrchFailed {
            parent_instance: self.instance.clone(),
            parent_execution_id: self.execution_id.unwrap_or(UNKNOWN_EXECUTION),
            parent_id: self.event_id,
            details,
        }
    }

    pub(crate) fn success(&self, result: String) -> WorkItem {
        WorkItem::SubOrchCompleted {
            parent_instance: self.instance.clone(),
            parent_execution_id: self.execution_id.unwrap_or(UNKNOWN_EXECUTION),
            parent_id: self.event_id,
            result,
        }
    }
}
