//! Defects that the simulator must find. The number of defects that it finds measures the simulator.

use outlast_memory::Defect;
use outlast_model::defect::{Defect as Shipped, Judge};

/// A defect of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// A defect of shipped code.
    Shipped(Shipped),
    /// A defect of the memory store.
    Store(Defect),
    /// A commit drops the activities that the turn scheduled: history and queue disagree.
    CommitForgetsWork,
    /// A commit drops the messages that the turn sent.
    CommitForgetsMessages,
    /// An acknowledged start or message was never written.
    AcknowledgedNotDurable,
    /// A message of a client is stored twice.
    MessageTwice,
    /// A commit writes the completion of an activity twice.
    CompletionTwice,
    /// A cold load of a history misses its newest event.
    StaleRead,
    /// Renewals return success and change nothing.
    RenewalForgotten,
    /// Renewals stop when a node shuts down, while it still finishes its turns and activities (Azure DTS 331).
    DrainStopsRenewals,
    /// A lease lasts a thousand times as long as requested (DependencyTrack 6795).
    LeaseNeverEnds,
    /// A cold load of the key-value state returns no keys (duroxide-pg 0.1.37).
    KvReadEmpty,
    /// A parent that ends cancels a child that was never started: an orphan (C2).
    CancelsChildThatNeverStarted,
    /// A turn that continues as new drops its detached starts (C3).
    DetachedLostOnContinue,
    /// A retryable error of a renewal removes the activity without an outcome (C4).
    RenewalErrorLosesWork,
    /// A retryable error of a commit fails the instance (C5).
    OutageFailsInstance,
    /// A child that fails sends no outcome to its parent (C6, C7).
    ParentNotToldOfFailure,
    /// Continuing as new drops a message that was not dequeued yet (C9).
    CarryForwardTruncated,
    /// The leases of a node that is alive end, because another process takes the node for dead.
    LivingTakenForDead,
}

/// The shipped defects that the simulator must find. Tests of the PostgreSQL and of the Cosmos DB store find the others.
pub fn shipped_bugs() -> Vec<Bug> {
    let in_worlds = |defect: &Shipped| matches!(defect.judge(), Judge::Worlds | Judge::SequencesAndWorlds);
    Shipped::ALL.iter().filter(|defect| in_worlds(defect)).map(|defect| Bug::Shipped(*defect)).collect()
}

/// All defects of the simulator's wrapper and of the memory store that the simulator must find. Other defects of the memory store change nothing that the runtime relies
/// on, or an operation that the programs do not use.
pub const BUGS: &[Bug] = &[
    Bug::CommitForgetsWork,
    Bug::CommitForgetsMessages,
    Bug::AcknowledgedNotDurable,
    Bug::MessageTwice,
    Bug::CompletionTwice,
    Bug::StaleRead,
    Bug::RenewalForgotten,
    Bug::DrainStopsRenewals,
    Bug::LeaseNeverEnds,
    Bug::KvReadEmpty,
    Bug::CancelsChildThatNeverStarted,
    Bug::DetachedLostOnContinue,
    Bug::RenewalErrorLosesWork,
    Bug::OutageFailsInstance,
    Bug::ParentNotToldOfFailure,
    Bug::CarryForwardTruncated,
    Bug::LivingTakenForDead,
    Bug::Store(Defect::AckAfterTakeover),
    Bug::Store(Defect::AckIgnoresExpiry),
    Bug::Store(Defect::AckSkipsTokenCheck),
    Bug::Store(Defect::AckDeletesLateMessages),
    Bug::Store(Defect::AckKeepsLease),
    Bug::Store(Defect::LeaseNotExclusive),
    Bug::Store(Defect::LeaseStartsAtCall),
    Bug::Store(Defect::TokensRepeat),
    Bug::Store(Defect::WorkRenewRevives),
    Bug::Store(Defect::WorkAckLosesCompletion),
    Bug::Store(Defect::WorkAckUnknownTokenOk),
    Bug::Store(Defect::KvMergedTooEarly),
    Bug::Store(Defect::KvNeverMerged),
    Bug::Store(Defect::AttemptBelowZero),
    Bug::Store(Defect::OutcomeOfFirstExecution),
    Bug::Store(Defect::TimerVisibleAtOnce),
    Bug::Store(Defect::FusedQueuesToo),
    Bug::Store(Defect::StartTurnIgnoresMessages),
    Bug::Store(Defect::RefusedStartKeepsTurn),
    Bug::Store(Defect::ResetKeepsKeys),
    Bug::Store(Defect::ResetIgnoresTurn),
    Bug::Store(Defect::ResetNotAudited),
    Bug::Store(Defect::NoteNotKept),
    Bug::Store(Defect::NoteCountedTwice),
    Bug::Store(Defect::NoteKeepsFirstError),
    Bug::Store(Defect::ReleaseLosesLaterMessages),
    Bug::Store(Defect::ReleaseReordersMessages),
    Bug::Store(Defect::HoldCountsDelivery),
    Bug::Store(Defect::HoldIgnored),
    Bug::Store(Defect::HoldMissesLaterMessages),
];

impl Bug {
    /// The defect of the memory store, if this is one.
    pub(crate) fn defect(self) -> Option<Defect> {
        match self {
            Self::Store(defect) => Some(defect),
            _ => None,
        }
    }

    /// The defect of shipped code, if this is one.
    pub fn shipped(self) -> Option<Shipped> {
        match self {
            Self::Shipped(defect) => Some(defect),
            _ => None,
        }
    }

    /// Whether this is a defect of the PostgreSQL scheduler, which no other store has.
    pub(crate) fn is_of_postgres(self) -> bool {
        self.shipped()
            .is_some_and(|defect| matches!(defect.judge(), Judge::Sequences | Judge::SequencesAndWorlds))
    }

    /// The name on the command line.
    pub fn name(self) -> String {
        match self {
            Self::Store(defect) => format!("{defect:?}"),
            // The wrapper has a defect of the same name.
            Self::Shipped(defect) => format!("shipped-{defect:?}"),
            other => format!("{other:?}"),
        }
    }

    /// The defect with this name.
    pub fn parse(name: &str) -> Option<Self> {
        let stored = Defect::ALL.iter().map(|defect| Self::Store(*defect));
        BUGS.iter().copied().chain(stored).chain(shipped_bugs()).find(|bug| bug.name() == name)
    }
}
