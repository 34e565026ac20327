//! The operations of a sequence. Values are small and literal, so that a printed sequence can be read, and pasted into
//! `regressions.rs` with few changes.

pub(super) use super::reset::Branch;
pub(super) use super::turn::*;

/// An instance.
pub(super) type Id = &'static str;

/// The instances of sequences. One id is a prefix of another, one is not ASCII.
pub(super) const INSTANCES: [Id; 4] = ["a", "a1", "b", "ö"];

/// The length of most leases.
pub(super) const LEASE: u64 = 5_000;

/// An infinite time: more than a column holds.
pub(super) const FOR_EVER: u64 = u64::MAX;

/// One call of the contract, or an event around it.
#[derive(Debug, Clone)]
pub(super) enum Op {
    /// Time passes.
    Advance(u64),
    /// The clock is set back. Not in random sequences: stores may differ in `updated_at` then.
    SetBack(u64),
    /// The store is closed and opened again.
    Reopen,
    /// Stored texts of an instance become unreadable.
    Damage(Damage, Id),
    Enqueue {
        message: Message,
        delay: Option<u64>,
    },
    /// Unless this number of messages waits already.
    EnqueueWithin {
        message: Message,
        most: usize,
    },
    Start {
        to: Id,
        delay: Option<u64>,
        use_existing: bool,
        along: Vec<Message>,
    },
    /// A start with its first turn, whose `after_event_id` is this number.
    StartAhead {
        to: Id,
        after: u64,
        turn: Turn,
    },
    FetchTurn {
        lease: u64,
        supported: Option<Vec<(&'static str, &'static str)>>,
        how: Fetch,
    },
    AckTurn {
        token: Token,
        execution: Execution,
        turn: Turn,
    },
    AbandonTurn {
        token: Token,
        delay: Option<u64>,
        ignore_attempt: bool,
    },
    RenewTurn {
        token: Token,
        extend: u64,
    },
    HoldTurn {
        token: Token,
    },
    Hold(Id),
    Release(Id),
    /// A reset, or a fork.
    Reset(Branch),
    PauseOrchestration(&'static str),
    ResumeOrchestration(&'static str),
    Append {
        to: Id,
        execution: u64,
        events: Vec<(EventId, Happened)>,
    },
    EnqueueWork(Message),
    FetchWork {
        lease: u64,
        max: Option<usize>,
        session: Option<(&'static str, u64)>,
        tags: Tags,
    },
    AckWork {
        token: Token,
        completion: Option<Completion>,
    },
    /// With a turn whose `after_event_id` is the last stored event id plus this number.
    AckAhead {
        token: Token,
        completion: Completion,
        execution: Execution,
        late_by: u64,
        turn: Turn,
    },
    /// Activities with a turn of all their outcomes, whose `after_event_id` is the last stored event id plus this number.
    AckFused {
        tokens: Vec<Token>,
        late_by: u64,
        turn: Turn,
    },
    AbandonWork {
        token: Token,
        delay: Option<u64>,
        ignore_attempt: bool,
    },
    NoteWork {
        token: Token,
        delay: Option<u64>,
        error: &'static str,
    },
    RenewWork {
        token: Token,
        extend: u64,
    },
    RenewSessions {
        owners: Vec<&'static str>,
        extend: u64,
        idle: u64,
    },
    CleanUpSessions,
    DeleteAtomic {
        ids: Vec<Id>,
        force: bool,
    },
    Delete {
        id: Id,
        force: bool,
    },
    DeleteBulk(Bulk),
    Prune {
        id: Id,
        keep_last: Option<u32>,
        finished_ago: Option<u64>,
    },
    PruneBulk {
        bulk: Bulk,
        keep_last: Option<u32>,
        finished_ago: Option<u64>,
    },
    Read(Read),
}

/// Calls that change nothing.
#[derive(Debug, Clone)]
pub(super) enum Read {
    History(Id),
    Execution(Id, u64),
    AdminHistory(Id),
    AdminExecution(Id, u64),
    LoadTurn(Id, u64),
    Outcome(Id),
    CustomStatus(Id, u64),
    KeyValue(Id, &'static str),
    KeyValues(Id),
    Stats(Id),
    Instances,
    InstancesByStatus(&'static str),
    Executions(Id),
    LatestExecution(Id),
    Info(Id),
    ExecutionInfo(Id, u64),
    Metrics,
    Depths,
    Pending(Id, usize),
    Children(Id),
    Parent(Id),
    Tree(Id),
    Query(Query),
    /// A page position that no store returned.
    BogusPage(&'static str),
    DeadLetters(usize),
    Held(Id),
    HeldCounts,
    PausedOrchestrations,
    /// The newest records.
    Audit(usize),
}

/// Which stored texts of an instance become unreadable.
#[derive(Debug, Clone, Copy)]
pub enum Damage {
    /// Its events, of every execution.
    History,
    /// Its messages, leased or not.
    Messages,
    /// Its activities, leased or not.
    Work,
}

/// Which method fetches a turn.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fetch {
    Item,
    WithHistory,
    Warm,
}

/// A lease, counted back from the newest: one that was neither given back nor taken over (it may have expired), or one that was; or
/// a text that is not a token.
#[derive(Debug, Clone, Copy)]
pub(super) enum Token {
    Turn(usize),
    Work(usize),
    DoneTurn(usize),
    DoneWork(usize),
    Bogus(&'static str),
}

/// The execution that a turn is committed to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Execution {
    Fetched,
    Next,
    Number(u64),
}

#[derive(Debug, Clone)]
pub(super) enum Tags {
    Default,
    Only(Vec<&'static str>),
    DefaultAnd(Vec<&'static str>),
    Any,
    None,
}

/// The filter of a bulk operation.
#[derive(Debug, Clone, Default)]
pub(super) struct Bulk {
    pub(super) ids: Option<Vec<Id>>,
    pub(super) finished_ago: Option<u64>,
    pub(super) limit: Option<u32>,
}

/// Which instances are listed.
#[derive(Debug, Clone, Default)]
pub(super) struct Query {
    pub(super) status: Option<&'static str>,
    pub(super) name: Option<&'static str>,
    pub(super) prefix: Option<&'static str>,
    pub(super) parent: Option<Id>,
    pub(super) from_ago: Option<u64>,
    pub(super) before_ago: Option<u64>,
    pub(super) limit: Option<u32>,
}

/// Every read for every instance, which ends each sequence.
pub(super) fn sweep() -> Vec<Op> {
    let mut reads = vec![
        Read::Instances,
        Read::Metrics,
        Read::Depths,
        Read::DeadLetters(100),
        Read::Query(Query { limit: Some(1), ..Query::default() }),
        Read::Query(Query { prefix: Some("a"), ..Query::default() }),
        Read::InstancesByStatus("Running"),
        Read::HeldCounts,
        Read::PausedOrchestrations,
        Read::Audit(100),
    ];
    for id in INSTANCES {
        reads.extend([
            Read::History(id),
            Read::Outcome(id),
            Read::CustomStatus(id, 0),
            Read::KeyValues(id),
            Read::Stats(id),
            Read::Executions(id),
            Read::Pending(id, 100),
            Read::Pending(id, 1),
            Read::Held(id),
            Read::Info(id),
            Read::Tree(id),
        ]);
        for execution in 1..=2 {
            reads.extend([Read::LoadTurn(id, execution), Read::ExecutionInfo(id, execution)]);
        }
    }
    reads.into_iter().map(Op::Read).collect()
}
