//! Rules about an instance whose history does not decode.

use super::diagnosis::{Finding, Rule};
use super::ended::cause;
use super::evidence::{Evidence, Undecodable};
use outlast_model::{ErrorDetails, PoisonMessageType};

pub(super) fn diagnose(evidence: &Evidence<'_>, undecodable: Undecodable<'_>) -> Finding {
    const ALSO: &str = ", and its history does not decode";
    match undecodable {
        Undecodable::Running => {
            let limit = match evidence.max_attempts {
                Some(limit) => format!("after {limit} deliveries of a turn"),
                None => "after the last delivery of a turn".to_string(),
            };
            let says = format!(
                "has a history that does not decode: a runtime that can decode it goes on, and the others fail the instance {limit}, so \
                 run the release that wrote it, or restore the store from a backup"
            );
            Finding::new(Rule::Undecodable, says)
        }
        Undecodable::Completed => Finding::new(Rule::Completed, format!("completed{ALSO}")),
        Undecodable::Failed(details) => match cause(details) {
            None => Finding::new(Rule::Cancelled, format!("was cancelled{ALSO}")),
            // The cause says it.
            Some(cause) if is_of_decoding(details) => Finding::new(Rule::Failed, format!("failed: {cause}")),
            Some(cause) => Finding::new(Rule::Failed, format!("failed: {cause}{ALSO}")),
        },
    }
}

fn is_of_decoding(details: &ErrorDetails) -> bool {
    matches!(
        details,
        ErrorDetails::Poison { message_type: PoisonMessageType::FailedDeserialization { .. }, .. }
    )
}
