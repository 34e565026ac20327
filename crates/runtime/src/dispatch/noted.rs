//! Gives back an activity whose handler asks for another attempt. The store keeps the failure with the activity.

use super::backoff::pause_report;
use super::lease::Lease;
use crate::core::Core;
use outlast_model::defect::{self, Defect};
use std::time::Duration;

/// The longest text of a failure that is kept with an activity. The failure of the last attempt reaches the caller as a whole.
const MOST_BYTES: usize = 4096;

/// Reports a failure and gives the activity back, to be delivered again after `delay`. Retries retryable errors while the lease
/// lasts; after that, the store counts the delivery as one without a reported failure. Returns whether the store accepted the failure.
pub(super) async fn give_back(core: &Core, lease: Lease, delay: Duration, error: &str) -> bool {
    let (mut failures, error) = (0, beginning(error));
    let accepted = loop {
        let given_back = match defect::is_on(Defect::FailureNotNoted) {
            true => core.store.abandon_work_item(lease.token(), Some(delay), true).await,
            false => core.store.abandon_work_noted(lease.token(), Some(delay), error).await,
        };
        match given_back {
            Ok(()) => break true,
            Err(problem) if problem.is_retryable() && !lease.lost().is_cancelled() => {
                failures += 1;
                pause_report(core, &lease, failures).await;
            }
            // The activity was cancelled or another process holds its lease, or an answer was lost.
            Err(problem) => {
                tracing::debug!(target: "duroxide::runtime", %problem, "could not report the failure of an activity");
                break false;
            }
        }
    };
    lease.settle();
    accepted
}

/// The beginning of a text, at most [`MOST_BYTES`].
fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(MOST_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(beginning("busy"), "busy");
        let long = "\u{1f980}".repeat(2_000);
        assert_eq!(beginning(&long).len(), MOST_BYTES);
        let odd = format!("a{long}");
        assert_eq!(beginning(&odd).len(), MOST_BYTES - 3);
    }
}
