//! Instances that cannot be run any more.

use crate::draft::Draft;
use crate::execution::{Execution, Setup};
use crate::finish::{Close, ParentClosePolicy};
use crate::turn::TurnOutput;
use outlast_model::{ErrorDetails, Event, WorkItem};

/// An instance that cannot be run any more: it ends without running its code.
pub struct Poison {
    /// What the execution is, or would be.
    pub setup: Setup,
    /// Its stored events.
    pub history: Vec<Event>,
    /// Why.
    pub details: ErrorDetails,
    /// Messages to others.
    pub notices: Vec<WorkItem>,
    /// The time.
    pub now_ms: u64,
    /// What happens to children.
    pub parent_close: ParentClosePolicy,
}

/// Ends an instance that failed too often, through the same door as every other ending.
pub fn poison(poison: Poison) -> TurnOutput {
    let Poison { setup, history, details, notices, now_ms, parent_close } = poison;
    let mut execution = Execution::without_code(setup);
    let mut draft = Draft::new(execution.who(), now_ms);
    for event in &history {
        execution.ledger.note(event);
    }
    if history.is_empty() {
        execution.start(&mut draft);
    }
    // What has ended cannot fail any more.
    if !execution.has_ended() {
        execution.finish(&mut draft, Close::Failed(details).into(), parent_close);
    }
    draft.commit.orchestrator_items.extend(notices);
    execution.report(&mut draft);
    TurnOutput { commit: draft.commit, report: draft.report }
}
