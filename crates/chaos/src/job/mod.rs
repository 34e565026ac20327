//! What the clients ask for: instances whose output and effects are known beforehand.

mod expect;
mod programs;

pub(crate) use expect::{CANCEL_REASON, Expected};
pub(crate) use programs::{GO, LETTERS, MAIL, orchestrations};

use clap::ValueEnum;
use outlast_testkit::rng::{DIGEST_START, Rng, digest};
use serde::{Deserialize, Serialize};

/// One instance that a client starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) number: u64,
    pub(crate) kind: Kind,
}

/// What it does; `programs.rs` has the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Chain,
    FanOut,
    Timer,
    Signal,
    Queue,
    Children,
    Detached,
    Generations,
    Retry,
    Session,
    Cut,
    Cancelled,
}

impl Kind {
    pub(crate) const ALL: [Self; 12] = [
        Self::Chain,
        Self::FanOut,
        Self::Timer,
        Self::Signal,
        Self::Queue,
        Self::Children,
        Self::Detached,
        Self::Generations,
        Self::Retry,
        Self::Session,
        Self::Cut,
        Self::Cancelled,
    ];

    /// The name of the orchestration.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Chain => "chain",
            Self::FanOut => "fan-out",
            Self::Timer => "timer",
            Self::Signal => "signal",
            Self::Queue => "queue",
            Self::Children => "children",
            Self::Detached => "detached",
            Self::Generations => "generations",
            Self::Retry => "retry",
            Self::Session => "session",
            Self::Cut => "cut",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Job {
    /// The job with this number, the same in every run of a seed.
    pub(crate) fn of(seed: u64, number: u64) -> Self {
        let mut rng = Rng::new(seed ^ digest(DIGEST_START, format!("job/{number}").as_bytes()));
        Self { number, kind: Kind::ALL[rng.index(Kind::ALL.len())] }
    }

    pub(crate) fn instance(&self) -> String {
        format!("job-{:06}-{}", self.number, self.kind.name())
    }

    /// The job that an instance belongs to, which may be a child of it.
    pub(crate) fn owner(instance: &str) -> &str {
        instance.split_once(FAMILY).map_or(instance, |(owner, _)| owner)
    }
}

/// Between the id of a job and what names one of its other instances.
const FAMILY: &str = "::";

/// The activity that leaves a row in the ledger, and the one that never ends by itself.
pub(crate) const EFFECT: &str = "Effect";
pub(crate) const PATIENT: &str = "Patient";

/// What [`EFFECT`] is asked to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Deed {
    pub(crate) job: String,
    pub(crate) label: String,
    /// So many deeds of this label are refused before one succeeds.
    pub(crate) refusals: u64,
    pub(crate) takes_ms: u64,
}

impl Deed {
    fn new(job: &str, label: &str) -> Self {
        let chance = digest(digest(DIGEST_START, job.as_bytes()), label.as_bytes());
        Self { job: job.to_string(), label: label.to_string(), refusals: 0, takes_ms: chance % 30 }
    }
}

/// A part that misbehaves on purpose: the judge must find each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sabotage {
    /// Activities answer without having left their effect
    LoseEffect,
    /// Activities are enqueued twice
    DoubleComplete,
    /// Turns are acknowledged and not stored
    SilentOk,
    /// Starts are acknowledged and not sent
    ForgetStart,
}

impl Sabotage {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::LoseEffect => "lose-effect",
            Self::DoubleComplete => "double-complete",
            Self::SilentOk => "silent-ok",
            Self::ForgetStart => "forget-start",
        }
    }

    /// One in twenty, the same ones in every process.
    pub(crate) fn strikes(self, wanted: Self, what: &str) -> bool {
        self == wanted && digest(DIGEST_START, what.as_bytes()).is_multiple_of(20)
    }
}
