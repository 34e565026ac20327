//! What can go wrong.

/// What can go wrong. The first group happens to single calls, the second to statements of a store, the third to whole
/// processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The call does nothing and returns a passing error.
    ErrorBefore,
    /// The call is made and returns a passing error: a lost acknowledgement, or a fetched lease that nobody knows of.
    LostAnswer,
    /// The call takes longer than a lease before it is made.
    StallBefore,
    /// The answer takes longer than a lease.
    StallAfter,
    /// The process dies instead of making the call.
    CrashBefore,
    /// The process dies instead of learning the answer.
    CrashAfter,
    /// The process dies, or drops the call, while it waits: before the call was made.
    CutBefore,
    /// The same after it was made.
    CutAfter,
    /// What was fetched is leased for a moment only: it is delivered to somebody else as well.
    ShortLease,
    /// A message that the call wrote arrives twice.
    Duplicate,
    /// A statement fails inside its transaction, and the connection with it.
    Statement,
    /// A statement does its work and fails all the same; if it was the commit, everything is stored.
    StatementDone,
    /// A watch on an instance never fires.
    LostWakeUp,
    /// A process dies at a random moment.
    Crash,
    /// A process dies between two polls of its tasks.
    CrashAtPoll,
    /// A process is asked to stop at a random moment.
    Shutdown,
    /// None of a process's tasks is polled for longer than a lease.
    Stalled,
    /// The clock of a process jumps, by up to an hour.
    ClockJump,
    /// The clock of the store jumps: forward by up to an hour, back by less than two leases.
    StoreClockJump,
    /// A process runs an older build, which does not know all versions of the code.
    OldBuild,
}

impl Fault {
    /// Those that happen to single calls and are drawn for them, with their usual rate in thousandths.
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

    /// All of them.
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
        Self::LostWakeUp,
        Self::Crash,
        Self::CrashAtPoll,
        Self::Shutdown,
        Self::Stalled,
        Self::ClockJump,
        Self::StoreClockJump,
        Self::OldBuild,
    ];

    /// The fault of this name, with dashes for spaces.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|fault| fault.name().replace(' ', "-") == name)
    }

    /// For tables and traces.
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
            Self::LostWakeUp => "lost wake-up",
            Self::Crash => "crash",
            Self::CrashAtPoll => "crash at poll",
            Self::Shutdown => "shutdown",
            Self::Stalled => "stalled",
            Self::ClockJump => "clock jump",
            Self::StoreClockJump => "store clock jump",
            Self::OldBuild => "old build",
        }
    }

    /// Whether it can happen to such a call.
    pub(crate) fn applies_to(self, op: &str) -> bool {
        match self {
            Self::ShortLease => matches!(op, "fetch_turn" | "fetch_work"),
            Self::Duplicate => matches!(op, "ack_turn" | "ack_work" | "ack_ahead"),
            Self::Statement | Self::StatementDone => op.starts_with("sql"),
            _ if op.starts_with("sql") => false,
            // A client that dies is a client that never asked, or one that asks again: both are there already.
            Self::CrashBefore | Self::CrashAfter => {
                !matches!(op, "start" | "enqueue" | "read" | "read_outcome")
            }
            _ => true,
        }
    }

    /// Whether the process that makes the call dies of it.
    pub(crate) fn is_crash(self) -> bool {
        matches!(self, Self::CrashBefore | Self::CrashAfter)
    }

    pub(crate) fn hides_the_answer(self) -> bool {
        matches!(self, Self::LostAnswer | Self::CrashAfter | Self::CutAfter)
    }
}
