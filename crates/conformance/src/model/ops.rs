//! What a sequence is made of. Values are small and literal, so that a printed sequence can be read, and pasted into
//! `regressions.rs` almost as it is.

pub(super) use super::turn::*;

/// An instance.
pub(super) type Id = &'static str;

/// Instances that sequences are about. One is a prefix of another, one is not ASCII.
pub(super) const INSTANCES: [Id; 4] = ["a", "a1", "b", "ö"];

/// How long most leases last.
pub(super) const LEASE: u64 = 5_000;

/// For ever: more than a column holds.
pub(super) const FOR_EVER: u64 = u64::MAX;

/// One call of the contract, or something that happens around it.
#[derive(Debug, Clone)]
pub(super) enum Op {
    /// Time passes.
    Advance(u64),
    /// Somebody sets the clock back. Not in random sequences: what `updated_at` is then, either store decides.
    SetBack(u64),
    /// The store is closed and opened again.
    Reopen,
    /// Stored texts of an instance become unreadable.
    Damage(Damage, Id),
    Enqueue {
        message: Message,
        delay: Option<u64>,
    },
    /// Unless so many wait already.
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
    /// With a turn that follows so many events after the last one that is stored.
    AckAhead {
        token: Token,
        completion: Completion,
        execution: Execution,
        late_by: u64,
        turn: Turn,
    },
    AbandonWork {
        token: Token,
        delay: Option<u64>,
        ignore_attempt: bool,
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
    /// A page position that no store gave out.
    BogusPage(&'static str),
    DeadLetters(usize),
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

/// A lease, by how many have been taken since: one that nobody has given back or taken over (it may have expired), or
/// one that somebody has; or a text that never was one.
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

/// Which instances a bulk operation takes.
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

/// Every read, for every instance: what a sequence ends with.
pub(super) fn sweep() -> Vec<Op> {
    let mut reads = vec![
        Read::Instances,
        Read::Metrics,
        Read::Depths,
        Read::DeadLetters(100),
        Read::Query(Query { limit: Some(1), ..Query::default() }),
        Read::Query(Query { prefix: Some("a"), ..Query::default() }),
        Read::InstancesByStatus("Running"),
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
            Read::Info(id),
            Read::Tree(id),
        ]);
        for execution in 1..=2 {
            reads.extend([Read::LoadTurn(id, execution), Read::ExecutionInfo(id, execution)]);
        }
    }
    reads.into_iter().map(Op::Read).collect()
}
