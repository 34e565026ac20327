//! The faults of a sweep, and the moments at which they happen.

use outlast_runtime::lens::counted;
use std::fmt;

/// A fault of one call of a process to its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CallFault {
    /// The process crashes before the call is made.
    CrashBefore,
    /// The process crashes after the call is made and before it has the answer.
    CrashAfter,
    /// The call is made, and the process gets an error.
    LostAnswer,
    /// The process stalls until its lease is over and the item is delivered again; then the call is made.
    LostLease,
    /// A client cancels the instance before the call is made.
    CancelBefore,
    /// A client cancels the instance after the call is made and before the process has the answer.
    CancelAfter,
}

impl CallFault {
    /// The faults that a call can have.
    pub(crate) fn of(op: Op) -> &'static [Self] {
        match op {
            // A fetch that is not made, and one whose answer is lost, have no effect on the code.
            Op::Fetch => &[Self::CrashAfter],
            Op::Read => &[Self::CrashBefore],
            Op::Send => &[Self::CrashBefore, Self::CrashAfter, Self::LostAnswer],
            Op::Commit => &[Self::CrashBefore, Self::CrashAfter, Self::LostAnswer, Self::LostLease],
        }
    }

    /// The requests to cancel that a call can meet.
    pub(crate) fn cancels(op: Op) -> &'static [Self] {
        match op {
            Op::Fetch => &[Self::CancelAfter],
            // The code does not run between the fetch of a turn and the read of its history.
            Op::Read => &[],
            Op::Send | Op::Commit => &[Self::CancelBefore, Self::CancelAfter],
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::CrashBefore => "the process crashes before the call",
            Self::CrashAfter => "the process crashes after the call",
            Self::LostAnswer => "the answer of the store is lost",
            Self::LostLease => "the process stalls and loses its lease before the call",
            Self::CancelBefore => "the instance is cancelled before the call",
            Self::CancelAfter => "the instance is cancelled after the call",
        }
    }
}

/// The kind of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    /// Leases a turn or an activity.
    Fetch,
    Read,
    /// A message of an activity.
    Send,
    /// Stores a turn or the outcome of an activity.
    Commit,
}

/// A call of a process to its store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) op: Op,
    /// The call in words.
    pub(crate) detail: String,
}

/// A moment with its fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// The call with this index.
    Call(usize, CallFault),
    /// The first process crashes after this number of polls of its tasks.
    Poll(u64),
    /// The instance is cancelled after this number of polls of the tasks of its process.
    CancelAtPoll(u64),
    /// The activity with this number fails.
    Activity(usize, ActivityFault),
}

/// The failure of an activity that a sweep fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ActivityFault {
    /// The activity fails instead of running.
    InsteadOfRunning,
    /// The body returns, and the activity fails nevertheless: the answer of the outside world is lost.
    AfterItsBody,
}

/// One run of a sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Schedule {
    pub(crate) target: Target,
    /// The call of the target in words.
    pub(crate) detail: String,
    /// Whether the process starts again only after the next action of the test.
    pub(crate) is_late: bool,
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.target {
            Target::Call(at, fault) => {
                write!(f, "store call {} ({}): {}", at + 1, self.detail, fault.words())?;
            }
            Target::Poll(at) => {
                let polls = counted(at, "poll");
                write!(f, "the process crashes between two awaits, after {polls} of its tasks")?;
            }
            Target::CancelAtPoll(at) => {
                let polls = counted(at, "poll");
                write!(
                    f,
                    "the instance is cancelled between two awaits, after {polls} of the tasks of its process"
                )?;
            }
            Target::Activity(at, fault) => {
                let when = match fault {
                    ActivityFault::InsteadOfRunning => "instead of running",
                    ActivityFault::AfterItsBody => "after its body has returned",
                };
                write!(f, "activity {} ({}) fails {when}", at + 1, self.detail)?;
            }
        }
        match self.is_late {
            true => f.write_str("; it starts again after the next message of the test"),
            false => Ok(()),
        }
    }
}
