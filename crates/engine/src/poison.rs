//! Ends instances that were delivered too often.

use crate::conclude::Conclusion;
use crate::draft::Draft;
use crate::execution::{Execution, Setup};
use crate::finish::Close;
use crate::op::child::ParentClosePolicy;
use crate::turn::TurnOutput;
use outlast_model::{ErrorDetails, Event, WorkItem};

/// An instance that ends without running its code.
pub struct Poison {
    /// The execution, which may have no history yet.
    pub setup: Setup,
    /// The stored events of the execution.
    pub history: Vec<Event>,
    /// The failure.
    pub details: ErrorDetails,
    /// Messages to other instances.
    pub notices: Vec<WorkItem>,
    /// The time of the turn.
    pub now_ms: u64,
    /// The policy for running children.
    pub parent_close: ParentClosePolicy,
}

/// Ends an instance with a failure, through the same step as every other ending.
pub fn poison(poison: Poison) -> TurnOutput {
    let Poison { setup, history, details, notices, now_ms, parent_close } = poison;
    let mut execution = Execution::without_code(setup);
    let mut draft = Draft::new(execution.identity(), now_ms);
    for event in &history {
        execution.summary.note(event);
    }
    if history.is_empty() {
        execution.start(&mut draft);
    }
    // An execution that has ended keeps its ending.
    if !execution.has_ended() {
        execution.finish(&mut draft, Conclusion::Ends(Close::Failed(details)), parent_close);
    }
    draft.commit.orchestrator_items.extend(notices);
    execution.report(&mut draft);
    TurnOutput { commit: draft.commit, report: draft.report }
}
