//! I11: the answers to all clients fit one order of events, that of real time.
//!
//! An instance is unknown, runs, and ends once; its custom status has versions. A client that asks after another client
//! was answered receives the same status or a later one. Of all clients that start an id with the call that leaves a
//! running instance unchanged, exactly one is answered that it started the instance.

use outlast_runtime::OrchestrationStatus;
use std::collections::BTreeMap;

/// The answers that clients received so far.
#[derive(Default)]
pub(crate) struct ClientAnswers {
    latest: BTreeMap<String, OrchestrationStatus>,
    claimed_starts: BTreeMap<String, u64>,
}

impl ClientAnswers {
    /// The latest status that any client received. A later question must not be answered with an older one.
    pub(crate) fn latest(&self, instance: &str) -> OrchestrationStatus {
        self.latest.get(instance).cloned().unwrap_or(OrchestrationStatus::NotFound)
    }

    /// Records the answer to a question that was asked when `floor` was the latest status.
    pub(crate) fn answered(
        &mut self,
        instance: &str,
        floor: &OrchestrationStatus,
        status: OrchestrationStatus,
    ) -> Result<(), String> {
        let is_older = rank(&status) < rank(floor) || (has_ended(floor) && status != *floor);
        if is_older {
            return Err(format!(
                "I11: the status of '{instance}' was {floor:?}, and a later answer is {status:?}"
            ));
        }
        if rank(&status) >= rank(&self.latest(instance)) {
            self.latest.insert(instance.to_string(), status);
        }
        Ok(())
    }

    /// Records that a client was answered that its call started the instance.
    pub(crate) fn claimed_start(&mut self, instance: &str) -> Result<(), String> {
        let count = self.claimed_starts.entry(instance.to_string()).or_default();
        *count += 1;
        match *count {
            1 => Ok(()),
            count => Err(format!("I11: {count} callers were answered that they started '{instance}'")),
        }
    }
}

fn has_ended(status: &OrchestrationStatus) -> bool {
    matches!(status, OrchestrationStatus::Completed { .. } | OrchestrationStatus::Failed { .. })
}

fn rank(status: &OrchestrationStatus) -> (u8, u64) {
    match status {
        OrchestrationStatus::NotFound => (0, 0),
        OrchestrationStatus::Running { custom_status_version, .. } => (1, *custom_status_version),
        OrchestrationStatus::Completed { .. } | OrchestrationStatus::Failed { .. } => (2, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(version: u64) -> OrchestrationStatus {
        OrchestrationStatus::Running { custom_status: None, custom_status_version: version }
    }

    fn completed(output: &str) -> OrchestrationStatus {
        let output = output.to_string();
        OrchestrationStatus::Completed { output, custom_status: None, custom_status_version: 0 }
    }

    #[test]
    fn a_status_older_than_an_earlier_answer_fails() {
        for (floor, then) in [
            (running(0), OrchestrationStatus::NotFound),
            (running(2), running(1)),
            (completed("a"), running(9)),
            (completed("a"), completed("b")),
        ] {
            let mut client_answers = ClientAnswers::default();
            client_answers.answered("i", &OrchestrationStatus::NotFound, floor.clone()).unwrap();
            assert_eq!(client_answers.latest("i"), floor);
            assert!(client_answers.answered("i", &floor, then.clone()).is_err(), "{floor:?} then {then:?}");
            // A question that was asked earlier may be answered later.
            assert_eq!(client_answers.answered("i", &OrchestrationStatus::NotFound, then), Ok(()));
        }
    }

    #[test]
    fn a_second_claimed_start_fails() {
        let mut client_answers = ClientAnswers::default();
        assert_eq!(client_answers.claimed_start("i"), Ok(()));
        assert!(client_answers.claimed_start("i").is_err());
        assert_eq!(client_answers.claimed_start("j"), Ok(()));
    }
}
