//! The jobs of the clients: instances with known outputs and effects.

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

/// The kind of a job; `programs.rs` has its orchestration.
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
    /// The job with this number. It is the same in every run of a seed.
    pub(crate) fn of(seed: u64, number: u64) -> Self {
        let mut rng = Rng::new(seed ^ digest(DIGEST_START, format!("job/{number}").as_bytes()));
        Self { number, kind: Kind::ALL[rng.index(Kind::ALL.len())] }
    }

    pub(crate) fn instance(&self) -> String {
        format!("job-{:06}-{}", self.number, self.kind.name())
    }

    /// The instance id of the job that an instance belongs to.
    pub(crate) fn owner(instance: &str) -> &str {
        instance.split_once(CHILD_SEPARATOR).map_or(instance, |(owner, _)| owner)
    }
}

/// Separates the id of a job from the name of one of its other instances.
const CHILD_SEPARATOR: &str = "::";

/// The activity that records an effect, and the activity that ends only when it is cancelled.
pub(crate) const EFFECT: &str = "Effect";
pub(crate) const ENDLESS: &str = "Endless";

/// The input of [`EFFECT`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EffectRequest {
    pub(crate) job: String,
    pub(crate) label: String,
    /// Number of effects with this label that fail before one succeeds.
    pub(crate) refusals: u64,
    pub(crate) takes_ms: u64,
}

impl EffectRequest {
    fn new(job: &str, label: &str) -> Self {
        let chance = digest(digest(DIGEST_START, job.as_bytes()), label.as_bytes());
        Self { job: job.to_string(), label: label.to_string(), refusals: 0, takes_ms: chance % 30 }
    }
}

/// Sabotage that the verification must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sabotage {
    /// Activities complete without their effect
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

    /// Whether the sabotage affects this subject: one in twenty, the same ones in every process.
    pub(crate) fn affects(self, kind: Self, subject: &str) -> bool {
        self == kind && digest(DIGEST_START, subject.as_bytes()).is_multiple_of(20)
    }
}
