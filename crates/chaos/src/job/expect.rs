//! How a job must end, and what it must leave in the ledger.

use super::programs::{GENERATIONS, GO, LETTERS, REFUSALS, WIDTH};
use super::{FAMILY, Job, Kind};
use outlast::{AppErrorKind, ErrorDetails, OrchestrationStatus};
use std::collections::BTreeSet;

/// Why clients cancel.
pub(crate) const CANCEL_REASON: &str = "enough";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expected {
    ending: Ending,
    /// Labels in the ledger, with a number where one is done several times.
    pub(crate) effects: BTreeSet<(String, u64)>,
    /// Instances beside its own.
    relatives: BTreeSet<&'static str>,
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
        let (labels, said) = match job.kind {
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
            _ => Ending::Completed(said.unwrap_or_else(|| labels.join(","))),
        };
        let times = if job.kind == Kind::Retry { REFUSALS + 1 } else { 1 };
        let effects =
            labels.into_iter().flat_map(|label| (0..times).map(move |n| (label.clone(), n))).collect();
        let relatives = match job.kind {
            Kind::Children => &["left", "right"][..],
            Kind::Detached => &["alone"],
            _ => &[],
        };
        Self { ending, effects, relatives: relatives.iter().copied().collect() }
    }

    /// Its instances, by id.
    pub(crate) fn family(&self, own: &str) -> BTreeSet<String> {
        let relatives = self.relatives.iter().map(|name| format!("{own}{FAMILY}{name}"));
        relatives.chain([own.to_string()]).collect()
    }

    /// What is wrong with how it stands, if anything.
    pub(crate) fn check(&self, told: &OrchestrationStatus) -> Result<(), String> {
        let fits = match (&self.ending, told) {
            (Ending::Completed(wanted), OrchestrationStatus::Completed { output, .. }) => wanted == output,
            (Ending::Cancelled, OrchestrationStatus::Failed { details, .. }) => is_our_cancellation(details),
            _ => false,
        };
        if fits { Ok(()) } else { Err(format!("expected {:?}, but it is {told:?}", self.ending)) }
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
    fn another_output_and_another_ending_are_refused() {
        let expected = Expected::of(&Job { number: 1, kind: Kind::Chain });
        assert_eq!(expected.check(&completed("a,b,c")), Ok(()));
        assert!(expected.check(&completed("a,b")).is_err());
        assert!(expected.check(&OrchestrationStatus::NotFound).is_err());
        let cancelled = Expected::of(&Job { number: 1, kind: Kind::Cancelled });
        assert!(cancelled.check(&completed("begun")).is_err());
    }

    #[test]
    fn every_kind_leaves_effects_and_comes_up() {
        let kinds: BTreeSet<&str> = (0..500).map(|number| Job::of(1, number).kind.name()).collect();
        assert_eq!(kinds.len(), Kind::ALL.len());
        for kind in Kind::ALL {
            assert!(!Expected::of(&Job { number: 1, kind }).effects.is_empty(), "{kind:?}");
        }
        let stubborn = Expected::of(&Job { number: 1, kind: Kind::Retry }).effects;
        assert_eq!(stubborn, (0..3).map(|n| ("stubborn".to_string(), n)).collect());
    }
}
