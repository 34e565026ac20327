//! Defects that the simulator must find, chosen at run time: its own score.

use outlast_memory::Defect;

/// What is wrong with a world's store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// One of the store's own.
    Store(Defect),
    /// A commit forgets the activities that the turn scheduled: history and queue disagree.
    CommitForgetsWork,
    /// A commit forgets the messages that the turn sent.
    CommitForgetsMessages,
    /// An acknowledged start or message was never written.
    AcknowledgedNotDurable,
    /// A message from outside is written twice.
    MessageTwice,
    /// A commit writes the completion of an activity twice.
    CompletionTwice,
    /// A cold read of a history misses its newest event.
    StaleRead,
    /// Renewals are answered with success and do nothing.
    RenewalForgotten,
    /// Renewals stop when a process is asked to stop, while it finishes what it has (Azure DTS 331).
    DrainStopsRenewals,
    /// A lease lasts a thousand times as long as it was asked for (DependencyTrack 6795).
    LeaseNeverEnds,
    /// A cold read of the key-value state finds none (duroxide-pg 0.1.37).
    KvReadEmpty,
    /// A parent that ends cancels a child that was never started: an orphan (C2).
    CancelsChildThatNeverStarted,
    /// A turn that continues as new forgets what it started beside itself (C3).
    DetachedLostOnContinue,
    /// A passing error of a renewal removes the activity without an outcome (C4).
    RenewalErrorLosesWork,
    /// A passing error of a commit fails the instance (C5).
    OutageFailsInstance,
    /// A child that fails does not tell its parent (C6, C7).
    ParentNotToldOfFailure,
    /// Continuing as new drops a message that nobody has read yet (C9).
    CarryForwardTruncated,
}

/// Every defect that must be found. Those of the store that are not here change nothing that the runtime relies on, or
/// something that the programs do not use yet.
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
    Bug::Store(Defect::AckAfterTakeover),
    Bug::Store(Defect::AckIgnoresExpiry),
    Bug::Store(Defect::AckSkipsTokenCheck),
    Bug::Store(Defect::AckDeletesLateArrivals),
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
];

impl Bug {
    /// The defect of the memory store that this is, if it is one.
    pub(crate) fn defect(self) -> Option<Defect> {
        match self {
            Self::Store(defect) => Some(defect),
            _ => None,
        }
    }

    /// For the command line.
    pub fn name(self) -> String {
        match self {
            Self::Store(defect) => format!("{defect:?}"),
            other => format!("{other:?}"),
        }
    }

    /// The bug with this name.
    pub fn parse(name: &str) -> Option<Self> {
        let stored = Defect::ALL.iter().map(|defect| Self::Store(*defect));
        BUGS.iter().copied().chain(stored).find(|bug| bug.name() == name)
    }
}
