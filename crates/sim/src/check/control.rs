//! I11: what clients are told about an instance fits one order of events, that of real time.
//!
//! An instance is unknown, runs, and ends once; its custom status has versions. Whoever asks after somebody else was answered
//! is told the same or something later. Of all who start an id by the call that leaves a taken one alone, one is told that
//! it did.

use outlast_runtime::OrchestrationStatus;
use std::collections::BTreeMap;

/// What clients were told so far.
#[derive(Default)]
pub(crate) struct Control {
    latest: BTreeMap<String, OrchestrationStatus>,
    started: BTreeMap<String, u64>,
}

impl Control {
    /// The latest answer by now. What is asked from now on must not be older.
    pub(crate) fn latest(&self, instance: &str) -> OrchestrationStatus {
        self.latest.get(instance).cloned().unwrap_or(OrchestrationStatus::NotFound)
    }

    /// An answer to a question that was asked when `floor` was the latest.
    pub(crate) fn told(
        &mut self,
        instance: &str,
        floor: &OrchestrationStatus,
        status: OrchestrationStatus,
    ) -> Result<(), String> {
        let is_older = rank(&status) < rank(floor) || (has_ended(floor) && status != *floor);
        if is_older {
            return Err(format!("I11: '{instance}' was {floor:?}, and is said to be {status:?} after that"));
        }
        if rank(&status) >= rank(&self.latest(instance)) {
            self.latest.insert(instance.to_string(), status);
        }
        Ok(())
    }

    /// Somebody was told that it was their call which started the instance.
    pub(crate) fn started(&mut self, instance: &str) -> Result<(), String> {
        let count = self.started.entry(instance.to_string()).or_default();
        *count += 1;
        match *count {
            1 => Ok(()),
            count => Err(format!("I11: {count} callers were told that they started '{instance}'")),
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
    fn nothing_goes_back() {
        for (floor, then) in [
            (running(0), OrchestrationStatus::NotFound),
            (running(2), running(1)),
            (completed("a"), running(9)),
            (completed("a"), completed("b")),
        ] {
            let mut control = Control::default();
            control.told("i", &OrchestrationStatus::NotFound, floor.clone()).unwrap();
            assert_eq!(control.latest("i"), floor);
            assert!(control.told("i", &floor, then.clone()).is_err(), "{floor:?} then {then:?}");
            // A question that was asked before may be answered late.
            assert_eq!(control.told("i", &OrchestrationStatus::NotFound, then), Ok(()));
        }
    }

    #[test]
    fn one_caller_starts_an_instance() {
        let mut control = Control::default();
        assert_eq!(control.started("i"), Ok(()));
        assert!(control.started("i").is_err());
        assert_eq!(control.started("j"), Ok(()));
    }
}
