//! Seeded defects of shipped code, which measure its tests: the [judge](Judge) of a defect must find it.
//!
//! A place with a defect asks [`is_on`]. Without the feature `test-hooks` the answer is the constant `false`, and the compiler removes the
//! defect.

#[cfg(feature = "test-hooks")]
use std::cell::Cell;

/// The tests that must find a defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judge {
    /// The worlds of the simulator.
    Worlds,
    /// The generated sequences of events for the scheduler of the PostgreSQL store.
    Sequences,
    /// The generated sequences, and the worlds of the simulator with the PostgreSQL store.
    SequencesAndWorlds,
    /// The validations, on the PostgreSQL store.
    Postgres,
    /// The validations, on the Cosmos DB store.
    Cosmos,
}

macro_rules! defects {
    ($($judge:ident { $($(#[doc = $text:literal])+ $name:ident = $family:literal,)* })*) => {
        /// A defect.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Defect {
            $($($(#[doc = $text])+ $name,)*)*
        }

        impl Defect {
            /// All defects.
            pub const ALL: &[Self] = &[$($(Self::$name),*),*];

            /// The tests that must find the defect.
            pub fn judge(self) -> Judge {
                match self { $($(Self::$name => Judge::$judge,)*)* }
            }

            /// The family of mistakes that the defect belongs to.
            pub fn family(self) -> &'static str {
                match self { $($(Self::$name => $family,)*)* }
            }

            /// The wrong behaviour, as a sentence.
            pub fn text(self) -> &'static str {
                match self { $($(Self::$name => concat!($($text),+),)*)* }
            }
        }
    };
}

defects! {
    Worlds {
        // The engine.
        /// The outcome of an activity of an earlier execution is recorded.
        OutcomeOfOldExecution = "fence",
        /// The second outcome of an operation is recorded.
        SecondOutcome = "fence",
        /// A turn records its messages in reverse order.
        MessagesReversed = "order",
        /// An execution does not record the first message that its predecessor left unread.
        CarriedMessageLost = "outbox",
        /// A child that fails sends its parent no outcome.
        FailureNotSent = "outbox",
        /// A detached start is lost if the turn ends its execution.
        DetachedStartLost = "outbox",
        /// A turn does not send the last of its decisions.
        DecisionNotSent = "outbox",
        /// A successor starts without the version that the code asked for.
        SuccessorWithoutVersion = "recovery",
        /// Continue-as-new carries over one message only.
        CarriesOneMessage = "limits",
        // The dispatchers of the runtime.
        /// The warm cache returns an execution at another position.
        WarmPositionIgnored = "cache",
        /// The keys of an execution that continued as new are not kept warm.
        WarmKeysForgotten = "cache",
        /// The keys of a cold execution are not loaded.
        ColdKeysForgotten = "recovery",
        /// Leases are not renewed.
        LeaseNotRenewed = "lease",
        /// Leases are not renewed while the runtime shuts down.
        DrainStopsRenewals = "lease",
        /// A turn or activity that is not started stays leased.
        UnstartedStaysLeased = "lease",
        /// A slot ends after a failed fetch.
        SlotEndsAfterError = "lost wake-up",
        /// An activity is removed if its outcome cannot be committed at once.
        OutcomeGivenUp = "outbox",
        /// An activity is poisoned at its third delivery.
        PoisonTooEarly = "limits",
        /// A failure of an activity is given back without its note.
        FailureNotNoted = "limits",
        /// A turn takes the time of its process instead of the store's.
        TurnAtProcessTime = "order",
        /// A run-ahead turn does not deliver its first outcome.
        AheadForgetsOutcome = "run-ahead",
        /// A run-ahead turn that was rejected counts as committed.
        RejectedAheadIsKept = "run-ahead",
        // The client.
        /// A client does not record that it paused an instance.
        PauseNotRecorded = "audit",
        // The parts that stores share.
        /// A timer is visible at once.
        TimerVisibleAtOnce = "order",
        /// A cleared key stays in the store.
        ClearedKeyStays = "recovery",
        /// Messages that arrive before the delayed start of their instance are dropped.
        EarlyMessageDropped = "outbox",
        /// All leases of an instance or activity have one secret.
        SecretRepeats = "fence",
        /// The version of a start is lost.
        StartVersionLost = "recovery",
        /// The tag of an activity is lost.
        TagLost = "limits",
        /// The session of an activity is lost.
        SessionLost = "lease",
        /// The last event id of a turn is the id of its first event.
        LastEventIsFirst = "cache",
        // The SQLite store.
        /// A turn is committed after its lease has ended.
        CommitAfterExpiry = "fence",
        /// An activity is completed after its lease was lost.
        CompletionWithoutLease = "fence",
        /// The lease of an activity is renewed after it was lost.
        RenewalWithoutLease = "fence",
        /// A run-ahead turn is committed although the position of its instance has changed.
        AheadWithoutPosition = "run-ahead",
        /// A run-ahead turn is committed and its outcome is queued too.
        AheadQueuesOutcome = "run-ahead",
        /// A first turn is committed although messages wait for its instance.
        StartIgnoresMessages = "run-ahead",
        /// A parked fetch is not polled when a delayed item becomes visible.
        DelayWakesNoFetch = "lost wake-up",
        /// Expired leases of turns are not found.
        ExpiredTurnsUnseen = "lease",
        /// The messages that arrived during a turn are not found after its commit.
        LateMessagesUnseen = "lost wake-up",
        /// A commit does not store the first message of its turn.
        CommitLosesMessage = "outbox",
        /// A commit does not store the first activity of its turn.
        CommitLosesActivity = "outbox",
        /// The keys of an execution that ends are not merged.
        KeysNotMerged = "recovery",
        /// A fetch does not report the failures that were noted.
        NotesNotRead = "limits",
        /// The messages of a held instance stay fetchable.
        HeldTurnRuns = "order",
        /// The messages of a held instance are not found after its release.
        ReleaseFindsNothing = "lost wake-up",
        /// The messages of a turn are delivered in reverse order.
        FetchReversed = "order",
        /// A change is not recorded in the audit.
        RecordLost = "audit",
        /// A change is recorded twice in the audit.
        RecordTwice = "audit",
        /// Callers are answered that a transaction was committed which failed.
        FailedCommitAcknowledged = "recovery",
        /// The completion of an activity that a busy file refused is answered as stored.
        BusyOutcomeLost = "outbox",
        /// An opening of an up-to-date store takes the write lock.
        OpeningTakesLock = "recovery",
    }
    // The scheduler of the PostgreSQL store.
    SequencesAndWorlds {
        /// A transaction leaves out the first client request that it took.
        ClientRequestLost = "outbox",
        /// A notification polls no parked fetch.
        NotificationUnseen = "lost wake-up",
        /// Parked fetches are never polled again after the server was away.
        PauseNeverEnds = "recovery",
    }
    // Another process, a notification or the next poll finds the item before a promise of the runtime breaks.
    Sequences {
        /// A commit of this process polls no parked fetch.
        LocalCommitUnseen = "lost wake-up",
        /// A poll counts as one that saw the commits during it.
        PollSeesLaterCommits = "lost wake-up",
    }
    // Holds, resets and the audit in the PostgreSQL store.
    Postgres {
        /// An instance is held while a turn of it runs.
        HoldIgnoresRunningTurn = "hold",
        /// A turn that is given back for a hold keeps its count of deliveries.
        HeldTurnStaysCounted = "hold",
        /// A release leaves the messages of its instance set aside.
        ReleaseForgetsMessages = "hold",
        /// A page of held instances begins with the last one of the page before.
        HeldPageRepeats = "hold",
        /// A resumption ends the pauses of all orchestrations.
        ResumeEndsAllPauses = "hold",
        /// A reset whose plan lacks the newest event is not refused.
        ResetOfOldPosition = "reset",
        /// A reset leaves the activities of the execution before.
        ResetLeavesActivities = "reset",
        /// A reset keeps the changes of keys from after the copied events.
        ResetKeepsLaterKeys = "reset",
        /// A fork takes the id of an instance whose start waits.
        ForkTakesIdOfStart = "reset",
        /// A reset is not recorded.
        ResetUnrecorded = "audit",
        /// A record loses its request.
        RecordWithoutRequest = "audit",
        /// A page of the audit begins with the last record of the page before.
        AuditPageRepeats = "audit",
        /// The newest record is pruned.
        NewestRecordPruned = "audit",
    }
    // Holds, resets and the audit in the Cosmos DB store.
    Cosmos {
        /// A hold ends the live lease of a turn.
        HoldEndsLiveLease = "hold",
        /// The messages of a turn that is given back for a hold keep their counts of deliveries.
        HeldMessagesStayCounted = "hold",
        /// A cancellation does not release a held instance.
        CancelledStaysHeld = "hold",
        /// A second pause of an orchestration replaces the first one.
        PauseReplacesPause = "hold",
        /// The end of the reset execution is not recorded in its instance.
        ResetLeavesExecutionOpen = "reset",
        /// The first messages of a second reset are delivered after those of the first one.
        SecondResetComesLast = "reset",
        /// A fork does not see that a start waits under its id.
        ForkIgnoresStart = "reset",
        /// A reset ends the hold of its instance.
        ResetEndsHold = "reset",
        /// A reset is stored without its record.
        RecordOfResetLost = "audit",
        /// A record keeps its reason as its result.
        RecordMixesTexts = "audit",
        /// A page of the audit has the record that it should begin after.
        AuditPageOverlaps = "audit",
        /// A pruning deletes records that are not old.
        YoungRecordPruned = "audit",
    }
}

#[cfg(feature = "test-hooks")]
thread_local! {
    static ACTIVE: Cell<Option<Defect>> = const { Cell::new(None) };
}

/// Whether this thread runs with the defect.
#[cfg(feature = "test-hooks")]
pub fn is_on(defect: Defect) -> bool {
    ACTIVE.get() == Some(defect)
}

/// Whether this thread runs with the defect: never, without the feature `test-hooks`.
#[cfg(not(feature = "test-hooks"))]
#[inline]
pub const fn is_on(_: Defect) -> bool {
    false
}

/// A defect of this thread, until the value is dropped.
#[cfg(feature = "test-hooks")]
#[must_use = "the defect ends with this value"]
pub struct Active(());

/// Turns a defect on for this thread.
#[cfg(feature = "test-hooks")]
pub fn activate(defect: Defect) -> Active {
    ACTIVE.set(Some(defect));
    Active(())
}

#[cfg(feature = "test-hooks")]
impl Drop for Active {
    fn drop(&mut self) {
        ACTIVE.set(None);
    }
}

#[cfg(all(test, feature = "test-hooks"))]
mod tests {
    use super::*;

    #[test]
    fn a_defect_is_on_in_its_thread_until_its_guard_is_dropped() {
        let active = activate(Defect::SecondOutcome);
        assert!(is_on(Defect::SecondOutcome) && !is_on(Defect::MessagesReversed));
        assert!(!std::thread::scope(|scope| scope.spawn(|| is_on(Defect::SecondOutcome)).join().unwrap()));
        drop(active);
        assert!(!is_on(Defect::SecondOutcome));
    }
}
