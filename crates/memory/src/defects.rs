//! Seeded defects: the contract with one rule broken. The validation suite must catch every one of them.
//!
//! Each file overrides the rules of the file with the same name in `rules`. A rule without a defect in force answers as
//! [`Contract`] does.

mod activity;
mod admin;
mod commit;
mod dead_letter;
mod fetch;
mod hold;
mod kv;
mod lease;
mod node;
mod once;
mod park;
mod reset;
mod retention;
mod start;
mod transfer;

#[cfg(doc)]
use crate::rules::Contract;

/// The rules that a store follows. The default is the contract.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rules {
    /// The rule that is broken, if any.
    pub defect: Option<Defect>,
}

impl Rules {
    /// The contract with one rule broken.
    pub fn with(defect: Defect) -> Self {
        Self { defect: Some(defect) }
    }
}

macro_rules! defects {
    ($($(#[doc = $what:literal])+ $name:ident = $source:literal,)+) => {
        /// A broken rule of the contract. Many are bugs that stores of this family had; [`Defect::source`] names the place.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Defect {
            $($(#[doc = $what])+ $name,)+
        }

        impl Defect {
            /// Every defect.
            pub const ALL: &'static [Defect] = &[$(Defect::$name,)+];

            /// Where the bug was seen: an entry of the contract's trap list, or empty for an invented bug.
            pub fn source(self) -> &'static str {
                match self {
                    $(Defect::$name => $source,)+
                }
            }
        }
    };
}

defects! {
    /// A run-ahead turn is committed although the lease of its activity is lost.
    AheadSkipsFence = "",
    /// A run-ahead turn is committed although the instance has changed.
    AheadIgnoresPosition = "",
    /// A turn of several outcomes is committed although leases of activities besides the first are lost: the outcome of the next
    /// worker is applied too.
    FusedChecksOneLease = "",
    /// The outcomes of a turn are queued although the turn is committed.
    FusedQueuesToo = "",
    /// The first turn of an instance is committed with its start although messages wait for the instance.
    StartTurnIgnoresMessages = "",
    /// The first turn of an instance is kept although the store refuses to start the instance.
    RefusedStartKeepsTurn = "",
    /// A run-ahead turn is committed although it ran by another clock.
    AheadIgnoresTime = "",
    /// A run-ahead turn is committed although older messages wait.
    AheadOvertakesMessages = "",
    /// A commit with an unknown token is accepted and does nothing.
    AckSkipsTokenCheck = "",
    /// A commit is accepted after its lease ended.
    AckIgnoresExpiry = "",
    /// A commit is accepted although another worker took the instance over.
    AckAfterTakeover = "duroxide-pg 7.2.4",
    /// A refused commit has already deleted its messages.
    HalfABatchCommitted = "",
    /// A commit deletes messages that arrived after the fetch.
    AckDeletesLateMessages = "",
    /// A commit does not release the lease.
    AckKeepsLease = "",
    /// Cancelled activities are deleted before the turn's own are enqueued.
    CancelBeforeEnqueue = "duroxide-pg 7.2.19",
    /// An event whose id exists is ignored.
    DuplicateEventIgnored = "spec 0.3",
    /// An event whose id exists replaces the stored one.
    DuplicateEventOverwrites = "",
    /// An event without an id is stored.
    EventIdZeroAccepted = "",
    /// The current execution is set by the last commit instead of the highest one.
    ExecutionIdAssigned = "duroxide-cdb 7.4.6",
    /// Enqueueing a start creates the instance.
    InstanceCreatedOnEnqueue = "seeds 001 and 004",
    /// A delay given to enqueue is lost.
    LostDelay = "",
    /// A timer enqueued by a commit is visible at once.
    TimerVisibleAtOnce = "",
    /// Messages are delivered in order of insertion, not of availability.
    InsertionOrder = "runtime.md C13",
    /// A fetch takes all messages of an instance, however many and large they are.
    FetchUnbounded = "",
    /// A fetch that cannot take all messages of an instance leaves the start of its execution behind.
    BoundLeavesStartBehind = "",
    /// A fetch that cannot take all messages of an instance takes the newest.
    BoundTakesNewest = "",
    /// Messages that a fetch left behind overtake messages that were abandoned with a delay.
    DelayLetsTheRestOvertake = "",
    /// A fetch delivers one message of the batch.
    OneMessagePerFetch = "",
    /// Deliveries of messages are not counted.
    AttemptsNotCounted = "core 7.1.26",
    /// A batch reports its smallest delivery count.
    SmallestAttemptReported = "",
    /// An abandon with `ignore_attempt` wraps the delivery count below zero.
    AttemptBelowZero = "",
    /// An abandon ignores `ignore_attempt`.
    IgnoreAttemptIgnored = "core 7.1.37",
    /// An abandon changes every message of the instance, not only the fetched messages.
    AbandonTouchesAllRows = "core 7.1.6",
    /// An abandon without a delay moves the messages to the end of the line.
    AbandonRewritesVisibility = "duroxide-pg 7.2.24",
    /// An abandon with a delay makes the messages visible at once.
    AbandonLosesDelay = "core 7.1.36",
    /// An abandon with an unknown token succeeds.
    AbandonUnknownTokenOk = "duroxide-cdb 7.4.6",
    /// Two fetches can hold one instance.
    LeaseNotExclusive = "",
    /// Every lease has the same token.
    TokensRepeat = "core 7.1.16",
    /// A lease starts when the fetch is called, not when the row is claimed.
    LeaseStartsAtCall = "duroxide-pg 7.2.9",
    /// A dropped fetch keeps its lease.
    DroppedFetchKeepsLease = "core 7.1.9",
    /// Renewal revives a lease that ended.
    RenewRevives = "duroxide-pg 7.2.2",
    /// Renewal can move a deadline closer.
    RenewShortens = "duroxide-pg 7.2.2",
    /// Renewal counts whole seconds only.
    RenewTruncatesToSeconds = "duroxide-pg 7.4.5",
    /// An orphan at the head of the queue stops all fetches.
    OrphanBlocksQueue = "runtime.md C1, 7.4.1",
    /// Messages that arrive while a start is delayed are treated as orphans.
    DelayedStartForgotten = "",
    /// Queue messages for an unknown instance are kept.
    OrphanQueueMessagesKept = "core 7.1.23",
    /// Orphaned control messages are deleted.
    OrphanControlMessagesDropped = "",
    /// A message that does not decode is deleted without a dead letter.
    UndecodableMessageDropped = "runtime.md C12, 7.4.2",
    /// An activity that does not decode stops all workers.
    UndecodableWorkBlocks = "7.4.1",
    /// History is delivered without the events that do not decode.
    CorruptHistoryShortened = "core 7.1.26, duroxide-pg 7.2.14",
    /// A fetch fails on a history that does not decode, and keeps the lease.
    CorruptHistoryIsAnError = "duroxide-pg 7.2.18",
    /// Reading a history skips the events that do not decode.
    CorruptReadShortened = "duroxide-pg 7.2.14",
    /// A commit decodes the history that is stored.
    AckReadsHistory = "seed 000",
    /// The capability filter is applied after the lease was taken and the attempt counted.
    FilterAfterLock = "duroxide-cdb 7.4.6",
    /// The capability filter is ignored.
    FilterIgnored = "",
    /// An instance that the filter excludes hides those behind it.
    FilterHidesTheRest = "duroxide-pg 7.2.25",
    /// An execution without a pinned version is excluded by every filter.
    UnpinnedExcluded = "",
    /// The pinned version is stored once and never changed.
    PinIsWriteOnce = "",
    /// Activities are delivered newest first.
    WorkLifo = "",
    /// Deliveries of activities are not counted.
    WorkAttemptsNotCounted = "",
    /// An activity is completed after its lease ended.
    WorkAckIgnoresExpiry = "duroxide-pg 7.2.17",
    /// Completing a deleted activity succeeds.
    WorkAckUnknownTokenOk = "core 7.1.33",
    /// Completing an activity loses the completion.
    WorkAckLosesCompletion = "",
    /// An activity's lease is revived by renewal.
    WorkRenewRevives = "",
    /// An abandon of an activity with a delay makes it visible at once.
    WorkAbandonLosesDelay = "core 7.1.36",
    /// The failure of an activity's handler is not kept.
    NoteNotKept = "",
    /// The failure of an activity's handler is counted twice.
    NoteCountedTwice = "",
    /// The first failure of an activity's handler is kept as the last one.
    NoteKeepsFirstError = "",
    /// A delivery that reported a failure stays in the delivery count.
    NotedDeliveryCounted = "",
    /// A reported failure sets the delivery count to zero.
    NoteForgetsDeliveries = "",
    /// An activity whose handler has failed is visible at once.
    NoteLosesDelay = "",
    /// Reporting a failure with a token that holds no activity succeeds.
    NoteUnknownTokenOk = "",
    /// Tags are ignored.
    TagFilterIgnored = "",
    /// The tag is lost when a commit enqueues the activity.
    TagLostOnAck = "core 7.1.22, duroxide-cdb 7.3.4",
    /// The session is lost when a commit enqueues the activity.
    SessionLostOnAck = "core 7.1.22",
    /// A session held by another owner can be taken.
    SessionStolen = "",
    /// An activity of a session goes to a caller without a session.
    SessionIgnored = "",
    /// A session's lease is revived by renewal.
    SessionRenewRevives = "",
    /// Idle sessions are renewed.
    SessionIdleIgnored = "",
    /// The completion or renewal of an activity does not count as session activity.
    SessionActivityNotStamped = "duroxide-cdb 7.3.8",
    /// Sessions with waiting activities are cleaned up.
    CleanupIgnoresPendingWork = "",
    /// Key-value writes reach the snapshot before the execution ends.
    KvMergedTooEarly = "core 7.1.20, duroxide-pg 7.2.15",
    /// Key-value writes are not merged when the execution ends.
    KvNeverMerged = "",
    /// Clearing all keys leaves those of earlier executions.
    ClearAllForgetsStore = "duroxide-cdb 7.3.2",
    /// Removed keys stay visible until the execution ends.
    TombstonesIgnored = "",
    /// Pruning removes key-value entries.
    PruneDeletesKv = "core 7.1.21, duroxide-cdb 7.3.3",
    /// Pruning removes the current execution.
    PruneCurrentExecution = "",
    /// Bulk pruning skips running instances.
    BulkPruneSkipsRunning = "core 7.1.25, duroxide-pg 7.2.20",
    /// Pruning ignores the time limit.
    PruneIgnoresCutoff = "duroxide-cdb 7.4.6",
    /// A running instance is deleted without force.
    DeleteIgnoresRunning = "",
    /// Deleting a parent leaves its children behind.
    DeleteOrphansChildren = "",
    /// Deleting keeps the lease, so that a commit brings the instance back.
    DeleteKeepsLease = "",
    /// Deleting keeps waiting activities.
    DeleteKeepsWork = "",
    /// Deleting keeps key-value entries.
    DeleteKeepsKv = "",
    /// Bulk deletion takes running instances too.
    BulkDeleteTakesRunning = "",
    /// Bulk deletion takes instances with a running child.
    BulkDeleteForcesChildren = "7.4.8",
    /// Bulk deletion ignores its limit.
    BulkDeleteIgnoresLimit = "",
    /// The first status change of a turn wins.
    FirstCustomStatusWins = "",
    /// Every status event counts as a version.
    CustomStatusVersionPerEvent = "",
    /// Clearing the status does nothing.
    CustomStatusNotCleared = "",
    /// `completed_at` is set for running executions.
    CompletedAtWhileRunning = "7.4.4",
    /// Stored sizes are counted in characters.
    SizesInCharacters = "7.4.4",
    /// Statistics count keys that were removed.
    StatsCountRemovedKeys = "duroxide-pg 6.2",
    /// Statistics report zero for data that does not decode.
    StatsSwallowErrors = "core 7.1.19, duroxide-cdb 7.3.1",
    /// A fetch does not wait.
    NeverWaits = "",
    /// A parked fetch is not woken by a change.
    LostWakeUp = "",
    /// Event timestamps are rewritten.
    EventsRestamped = "spec 2.2.3",
    /// Events are stamped with the contract of the store's own build.
    StampsRewritten = "",
    /// Events of a new execution are stored under the one before it.
    SuccessorInPredecessor = "core 7.1.2",
    /// A start that waits for an instance gives it its name and version.
    StartRenamesInstance = "core 7.1.3",
    /// The start of a successor loses the messages that it carries over.
    CarriedMessagesLost = "core 7.1.7",
    /// A start replaces an instance that exists.
    StartPolicyIgnored = "runtime.md A7",
    /// A warm fetch reports a stale event id.
    StaleLastEventId = "",
    /// A batch fetch delivers one activity twice.
    BatchHandsOutTwice = "",
    /// The outcome is read from the first execution.
    OutcomeOfFirstExecution = "",
    /// A page leaves out its first instance.
    PageSkipsOne = "",
    /// A takeover does not cover the messages that the lost lease covered.
    TakeoverKeepsOldCover = "",
    /// A token that was taken over abandons the turn of another worker.
    AbandonAfterTakeover = "",
    /// The start of a successor loses its parent.
    SuccessorLosesParent = "",
    /// Messages for an instance that has ended are dropped by the store.
    EndedTakesNothing = "",
    /// The pending read leaves out activities under a lease.
    PendingHidesLeased = "",
    /// The pending read shows activities of other instances.
    PendingMixesInstances = "",
    /// The pending read shows no failures of activities.
    PendingHidesFailures = "",
    /// A page of a queue leaves out activities under a lease.
    QueuePageHidesLeased = "",
    /// The counts of a tag take an activity whose lease is over for a leased one.
    TagsCountEndedLeases = "",
    /// A hold has no effect on fetches.
    HoldIgnored = "",
    /// A hold is placed while a turn of the instance runs, and ends its lease.
    HoldIgnoresTurn = "",
    /// Messages that arrive for a held instance are delivered.
    HoldMissesLaterMessages = "",
    /// A turn that is given back for a hold counts as a delivery.
    HoldCountsDelivery = "",
    /// A turn whose lease is over holds its instance.
    HoldTurnIgnoresExpiry = "",
    /// A run-ahead turn of a held instance is committed.
    AheadIgnoresHold = "",
    /// A release loses the messages that arrived meanwhile.
    ReleaseLosesLaterMessages = "",
    /// A release delivers messages in another order.
    ReleaseReordersMessages = "",
    /// A cancellation of a held instance waits for its release.
    CancelWaitsForRelease = "",
    /// The oldest due message may be one of an instance whose turn runs.
    OldestDueCountsLeased = "",
    /// Queue depths and gauges count the messages of held instances.
    DepthsCountHeld = "",
    /// Deleting keeps the hold, so that a new instance with the same id is held.
    DeleteKeepsHold = "",
    /// A second pause of an orchestration replaces the first one.
    SecondPauseReplacesFirst = "",
    /// The resumption of an orchestration resumes all orchestrations.
    ResumeEndsEveryPause = "",
    /// A reset is stored while a turn of the instance runs.
    ResetIgnoresTurn = "",
    /// A reset is stored although the execution has gone on since it was planned.
    ResetIgnoresPosition = "",
    /// A reset leaves the execution that it replaces running.
    ResetLeavesExecutionRunning = "",
    /// A reset does not put the keys back.
    ResetKeepsKeys = "",
    /// A reset makes the changes of the execution that it replaces permanent.
    ResetMergesKeys = "",
    /// A reset does not cancel the activities of the execution that it replaces.
    ResetKeepsActivities = "",
    /// A reset does not put the custom status back.
    ResetKeepsCustomStatus = "",
    /// The messages of a reset are delivered after messages that wait.
    ResetMessagesComeLast = "",
    /// The messages of a second reset are delivered after waiting messages of the first one.
    SecondResetMessagesComeLast = "",
    /// A reset is not in the audit.
    ResetNotAudited = "",
    /// A reset releases a held instance.
    ResetReleasesHold = "",
    /// An import is stored although a start waits for its id.
    ImportIgnoresWaitingStart = "",
    /// The timers of an imported instance fire at once.
    ImportFiresTimers = "",
    /// An import forgets how often messages and activities were delivered.
    ImportForgetsDeliveries = "",
    /// An import makes the changes of the current execution permanent.
    ImportMergesKeys = "",
    /// An import forgets the keys of messages, so that the instance takes them again.
    ImportForgetsMessageKeys = "",
    /// An imported instance is not held any more.
    ImportForgetsHold = "",
    /// An import is not in the audit.
    ImportNotAudited = "",
    /// A dead letter in a row of another instance is requeued.
    RequeueIgnoresInstance = "",
    /// A requeued item stays a dead letter, and can be requeued again.
    RequeueKeepsDeadLetter = "",
    /// A requeue is not in the audit.
    RequeueNotAudited = "",
    /// A drop of a dead letter is not in the audit.
    DropNotAudited = "",
    /// A page of the oldest instances leaves its first instance out.
    OldestPageSkipsOne = "",
    /// Retention deletes an instance that has ended, whatever its age.
    DeleteEndedIgnoresAge = "",
    /// Retention deletes an ended child on its own.
    DeleteEndedTakesChildren = "",
    /// Retention deletes an ended root with a child that runs.
    DeleteEndedTakesRunningChildren = "",
    /// Retention deletes a held instance.
    DeleteEndedTakesHeld = "",
    /// Retention deletes an instance together with messages that were not delivered.
    DeleteEndedDropsMessages = "",
    /// Retention deletes an instance together with activities that wait or run.
    DeleteEndedDropsActivities = "",
    /// Retention keeps an ended instance until its last timer fires.
    DeleteEndedWaitsForTimers = "",
    /// Pruning of the audit and of dead letters examines all rows in one step.
    PruneByAgeUnbounded = "",
    /// Pruning of the audit and of dead letters deletes rows of any age.
    PruneByAgeTakesYoung = "",
    /// Pruning of the audit deletes its newest record, so that ids may repeat.
    PruneTakesNewestRecord = "",
    /// A message with a key is stored again.
    OnceForgetsKey = "",
    /// The key of a message counts for all instances.
    OnceKeyIsGlobal = "",
    /// The key of a message that was refused is kept: the message is lost.
    OnceKeepsRefusedKey = "",
    /// Deletion keeps the keys of messages: a new instance with the same id refuses them.
    DeleteKeepsMessageKeys = "",
    /// A report of a node is stored whatever its size.
    NodeReportUnbounded = "",
    /// The first report of a node stays, and later ones are dropped.
    NodeReportKeepsFirst = "",
    /// The list of nodes leaves lost nodes out.
    LostNodesNotListed = "",
    /// A sweep deletes reports as soon as they expire.
    NodeSweepTakesExpired = "",
    /// A sweep deletes no report.
    NodeSweepTakesNothing = "",
    /// A sweep deletes more reports than its limit.
    NodeSweepUnbounded = "",
    /// The removal of a node deletes the reports of all nodes.
    NodeRemovalTakesAll = "",
    /// A fork takes an id whose start waits.
    ForkIgnoresWaitingStart = "",
}
