//! The faults that a world can have.

/// A fault. The first group affects single calls, the second statements of a store, the third whole nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The call is not made and returns a retryable error.
    ErrorBefore,
    /// The call is made and returns a retryable error: its acknowledgement is lost, and so is the token of a fetch.
    LostAnswer,
    /// The call takes longer than a lease before it is made.
    StallBefore,
    /// The answer takes longer than a lease.
    StallAfter,
    /// The node crashes before the call is made.
    CrashBefore,
    /// The node crashes after the call is made and before it receives the answer.
    CrashAfter,
    /// The node crashes, or drops the call, before the call was made.
    CutBefore,
    /// The node crashes, or drops the call, after the call was made.
    CutAfter,
    /// A fetched item has a very short lease, so it is delivered to another node as well.
    ShortLease,
    /// A message that the call wrote arrives twice.
    Duplicate,
    /// A statement fails inside its transaction.
    Statement,
    /// A statement succeeds and returns an error; if the statement is the commit, the transaction is stored.
    StatementDone,
    /// A transaction cannot begin, because another process holds the lock of the database. No process holds it: the statement fails.
    Busy,
    /// A watch on an instance never fires.
    LostWakeUp,
    /// A node crashes at a random time.
    Crash,
    /// A node crashes between two polls of its tasks.
    CrashAtPoll,
    /// A node shuts down at a random time.
    Shutdown,
    /// No task of a node is polled for longer than a lease.
    Stalled,
    /// The clock of a node jumps by up to an hour.
    ClockJump,
    /// The clock of the store jumps: forward by up to an hour, or back by less than two leases.
    StoreClockJump,
    /// A process outside of the world holds the write lock of a SQLite file for up to two leases.
    BusyFile,
    /// The leases of a crashed node end at once, because another process sees that the node is dead.
    Takeover,
    /// A node runs an older build, which lacks some versions of the orchestrations.
    OldBuild,
    /// A node runs a build whose code does not fit an instance, and parks the instance.
    BrokenBuild,
    /// A process cannot connect to the PostgreSQL server.
    LinkUnreachable,
    /// The PostgreSQL server undoes a transaction that conflicts with another one.
    LinkConflict,
    /// A process loses a connection to the PostgreSQL server before its transaction is committed.
    LinkLostBefore,
    /// A process loses a connection to the PostgreSQL server after its transaction was committed.
    LinkLostAfter,
    /// The connection on which a process receives notifications is lost, with the notifications under way.
    ListenerLost,
}

/// Calls that a world rarely makes.
const RARE_CALLS: &[&str] = &[
    "renew_turn",
    "abandon_turn",
    "abandon_work",
    "note_work",
    "renew_sessions",
    "clean_sessions",
    "start_ahead",
    "ack_fused",
];

impl Fault {
    /// Faults that are drawn for single calls, with their usual rate in thousandths.
    pub(crate) const OF_CALLS: &[(Self, u64)] = &[
        (Self::ErrorBefore, 25),
        (Self::LostAnswer, 25),
        (Self::StallBefore, 12),
        (Self::StallAfter, 12),
        (Self::CrashBefore, 6),
        (Self::CrashAfter, 9),
        (Self::ShortLease, 15),
        (Self::Duplicate, 30),
    ];

    /// All faults.
    pub const ALL: &[Self] = &[
        Self::ErrorBefore,
        Self::LostAnswer,
        Self::StallBefore,
        Self::StallAfter,
        Self::CrashBefore,
        Self::CrashAfter,
        Self::CutBefore,
        Self::CutAfter,
        Self::ShortLease,
        Self::Duplicate,
        Self::Statement,
        Self::StatementDone,
        Self::Busy,
        Self::LostWakeUp,
        Self::Crash,
        Self::CrashAtPoll,
        Self::Shutdown,
        Self::Stalled,
        Self::ClockJump,
        Self::StoreClockJump,
        Self::BusyFile,
        Self::Takeover,
        Self::OldBuild,
        Self::BrokenBuild,
        Self::LinkUnreachable,
        Self::LinkConflict,
        Self::LinkLostBefore,
        Self::LinkLostAfter,
        Self::ListenerLost,
    ];

    /// The fault of this name, with dashes for spaces.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|fault| fault.name().replace(' ', "-") == name)
    }

    /// The name in tables and traces.
    pub fn name(self) -> &'static str {
        match self {
            Self::ErrorBefore => "error before",
            Self::LostAnswer => "lost answer",
            Self::StallBefore => "stall before",
            Self::StallAfter => "stall after",
            Self::CrashBefore => "crash before",
            Self::CrashAfter => "crash after",
            Self::CutBefore => "cut before",
            Self::CutAfter => "cut after",
            Self::ShortLease => "short lease",
            Self::Duplicate => "duplicate",
            Self::Statement => "statement",
            Self::StatementDone => "statement done",
            Self::Busy => "busy",
            Self::LostWakeUp => "lost wake-up",
            Self::Crash => "crash",
            Self::CrashAtPoll => "crash at poll",
            Self::Shutdown => "shutdown",
            Self::Stalled => "stalled",
            Self::ClockJump => "clock jump",
            Self::StoreClockJump => "store clock jump",
            Self::BusyFile => "busy file",
            Self::Takeover => "takeover",
            Self::OldBuild => "old build",
            Self::BrokenBuild => "broken build",
            Self::LinkUnreachable => "link unreachable",
            Self::LinkConflict => "link conflict",
            Self::LinkLostBefore => "link lost before",
            Self::LinkLostAfter => "link lost after",
            Self::ListenerLost => "listener lost",
        }
    }

    /// Whether this fault can happen to a call of this name.
    pub(crate) fn applies_to(self, op: &str) -> bool {
        match self {
            Self::ShortLease => matches!(op, "fetch_turn" | "fetch_work"),
            Self::Duplicate => matches!(op, "ack_turn" | "ack_work" | "ack_ahead" | "ack_fused"),
            Self::Statement | Self::StatementDone => op.starts_with("sql"),
            Self::Busy => op == "sql begin",
            _ if op.starts_with("sql") => false,
            // A crashed client has the same effect as one that never made the call, or as one that repeats it.
            Self::CrashBefore | Self::CrashAfter => {
                !matches!(op, "start" | "enqueue" | "read" | "read_outcome")
            }
            _ => true,
        }
    }

    /// The factor of the usual rate of this fault at a call. Worlds make some calls rarely, so these calls have more faults.
    /// Crashes have low rates, so rare calls have even more crashes.
    pub(crate) fn weight(self, op: &str) -> u64 {
        match (RARE_CALLS.contains(&op), self.is_crash()) {
            (false, _) => 1,
            (true, false) => 6,
            (true, true) => 16,
        }
    }

    /// Whether the fault crashes the node that makes the call.
    pub(crate) fn is_crash(self) -> bool {
        matches!(self, Self::CrashBefore | Self::CrashAfter)
    }

    /// Whether the caller does not receive the answer of a call that was made.
    pub(crate) fn hides_answer(self) -> bool {
        matches!(self, Self::LostAnswer | Self::CrashAfter | Self::CutAfter)
    }
}
