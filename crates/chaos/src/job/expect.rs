//! The expected result and effects of a job.

use super::programs::{GENERATIONS, GO, LETTERS, REFUSALS, WIDTH};
use super::{CHILD_SEPARATOR, Job, Kind};
use outlast::{AppErrorKind, ErrorDetails, OrchestrationStatus};
use std::collections::BTreeSet;

/// The reason of cancellations.
pub(crate) const CANCEL_REASON: &str = "enough";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expected {
    ending: Ending,
    /// Labels in the effect ledger, numbered if a label occurs several times.
    pub(crate) effects: BTreeSet<(String, u64)>,
    /// Names of its other instances.
    other_instances: BTreeSet<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Ending {
    Completed(String),
    Cancelled,
}

impl Expected {
    pub(crate) fn of(job: &Job) -> Self {
        let numbered =
            |prefix: &str, count: u64| (0..count).map(|n| format!("{prefix}{n}")).collect::<Vec<_>>();
        let plain = |labels: &[&str]| labels.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (labels, output) = match job.kind {
            Kind::Chain => (plain(&["a", "b", "c"]), None),
            Kind::FanOut => (numbered("f", WIDTH as u64), None),
            Kind::Timer => (plain(&["before", "after"]), None),
            Kind::Signal => (plain(&["told"]), Some(format!("{GO},told"))),
            Kind::Queue => (plain(&["read"]), Some(numbered("", LETTERS).join(","))),
            Kind::Children => (plain(&["left", "right"]), None),
            Kind::Detached => (plain(&["sent", "alone"]), Some("sent".to_string())),
            Kind::Generations => (numbered("g", GENERATIONS), None),
            Kind::Retry => (plain(&["stubborn"]), None),
            Kind::Session => (numbered("s", 3), None),
            Kind::Cut => (plain(&["cut"]), Some(format!("{GO},cut"))),
            Kind::Cancelled => (plain(&["begun"]), None),
        };
        let ending = match job.kind {
            Kind::Cancelled => Ending::Cancelled,
            _ => Ending::Completed(output.unwrap_or_else(|| labels.join(","))),
        };
        let times = if job.kind == Kind::Retry { REFUSALS + 1 } else { 1 };
        let effects =
            labels.into_iter().flat_map(|label| (0..times).map(move |n| (label.clone(), n))).collect();
        let other_instances = match job.kind {
            Kind::Children => &["left", "right"][..],
            Kind::Detached => &["alone"],
            _ => &[],
        };
        Self { ending, effects, other_instances: other_instances.iter().copied().collect() }
    }

    /// The ids of all instances of the job.
    pub(crate) fn instance_ids(&self, own: &str) -> BTreeSet<String> {
        let other_instances = self.other_instances.iter().map(|name| format!("{own}{CHILD_SEPARATOR}{name}"));
        other_instances.chain([own.to_string()]).collect()
    }

    /// Checks the status of the job.
    pub(crate) fn check(&self, status: &OrchestrationStatus) -> Result<(), String> {
        let fits = match (&self.ending, status) {
            (Ending::Completed(wanted), OrchestrationStatus::Completed { output, .. }) => wanted == output,
            (Ending::Cancelled, OrchestrationStatus::Failed { details, .. }) => is_our_cancellation(details),
            _ => false,
        };
        if fits { Ok(()) } else { Err(format!("expected {:?}, found {status:?}", self.ending)) }
    }
}

fn is_our_cancellation(details: &ErrorDetails) -> bool {
    matches!(details, ErrorDetails::Application { kind: AppErrorKind::Cancelled { reason }, .. } if reason == CANCEL_REASON)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(output: &str) -> OrchestrationStatus {
        OrchestrationStatus::Completed {
            output: output.to_string(),
            custom_status: None,
            custom_status_version: 0,
        }
    }

    #[test]
    fn other_outputs_and_statuses_are_refused() {
        let expected = Expected::of(&Job { number: 1, kind: Kind::Chain });
        assert_eq!(expected.check(&completed("a,b,c")), Ok(()));
        assert!(expected.check(&completed("a,b")).is_err());
        assert!(expected.check(&OrchestrationStatus::NotFound).is_err());
        let cancelled = Expected::of(&Job { number: 1, kind: Kind::Cancelled });
        assert!(cancelled.check(&completed("begun")).is_err());
    }

    #[test]
    fn every_kind_has_effects_and_is_drawn() {
        let kinds: BTreeSet<&str> = (0..500).map(|number| Job::of(1, number).kind.name()).collect();
        assert_eq!(kinds.len(), Kind::ALL.len());
        for kind in Kind::ALL {
            assert!(!Expected::of(&Job { number: 1, kind }).effects.is_empty(), "{kind:?}");
        }
        let stubborn = Expected::of(&Job { number: 1, kind: Kind::Retry }).effects;
        assert_eq!(stubborn, (0..3).map(|n| ("stubborn".to_string(), n)).collect());
    }
}
