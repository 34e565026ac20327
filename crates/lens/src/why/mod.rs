//! Why an instance does not go on: one sentence for every state of an instance.
//!
//! The rules are tried in this order; the first one that applies makes the sentence.
//!
//! | file | state | rules |
//! |---|---|---|
//! | `held.rs` | the instance is held | paused by an operator, also with its orchestration, parked by a runtime |
//! | `undecodable.rs` | the history does not decode | its turns do not run, or the end that the store knows |
//! | `absent.rs` | no event is stored | set aside, the first turn, messages without an instance, not found |
//! | `ended.rs` | the execution has ended | completed, failed, cancelled, continued as new and then the first turn |
//! | `turn.rs` | a turn runs or is due | given back by older code, leased, given back, delivered without a commit, due |
//! | `operation.rs` | operations are open | set aside or lost, activity, child, event, queue, retry, timer |
//! | `operation.rs` | no operation is open | waits for nothing that can happen |

mod absent;
mod diagnosis;
mod ended;
mod evidence;
mod held;
mod node;
mod operation;
mod turn;
mod undecodable;
mod words;

pub use diagnosis::{Diagnosis, Rule};
pub use evidence::{Evidence, Undecodable};

use crate::count::counted;
use diagnosis::Finding;

/// The diagnosis of an instance: exactly one sentence, for every state.
///
/// A sentence about a child is complete when the diagnosis of the child is added: [`Diagnosis::child`] and [`Diagnosis::with_child`].
pub fn diagnose(evidence: &Evidence<'_>) -> Diagnosis {
    if let Some(held) = evidence.held {
        return Diagnosis::of(evidence.instance, held::diagnose(evidence, held));
    }
    if let Some(state) = evidence.undecodable {
        return Diagnosis::of(evidence.instance, undecodable::diagnose(evidence, state));
    }
    let finding = match evidence.history.last() {
        None => absent::diagnose(evidence),
        Some(last) => ended::diagnose(evidence, last)
            .or_else(|| turn::needs_patch(evidence))
            .or_else(|| {
                turn::diagnose(evidence, "a turn").map(|finding| with_dead_letters(evidence, finding))
            })
            .unwrap_or_else(|| with_dead_letters(evidence, operation::diagnose(evidence))),
    };
    Diagnosis::of(evidence.instance, finding)
}

/// Mentions dead letters that no rule mentions: one of them may be the message that the instance waits for.
fn with_dead_letters(evidence: &Evidence<'_>, mut finding: Finding) -> Finding {
    if finding.rule != Rule::SetAside && !evidence.dead_letters.is_empty() {
        let kept = counted(evidence.dead_letters.len(), "dead letter");
        finding.says.push_str(&format!(" ({kept} of it kept)"));
    }
    finding
}
