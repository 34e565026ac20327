//! The replay engine of Outlast: a turn is a function from a value to a value.
//!
//! There is no tokio here, no clock, no randomness, no store and no logging; the manifest cannot name them. What a turn
//! needs comes in with [`TurnInput`], what it wants done goes out with [`TurnOutput`]. Read `turn.rs` first: it is the
//! five steps in order.

mod admit;
mod combinator;
mod context;
mod decide;
mod draft;
mod drops;
mod emit;
mod execution;
mod finish;
mod future;
mod ledger;
mod limits;
mod mismatch;
mod op;
mod opening;
mod outcome;
mod poison;
mod state;
mod turn;
mod version;
mod wake;
mod walk;

pub use combinator::{Either2, Either3};
pub use context::OrchestrationContext;
pub use draft::{ChildEnded, Ending, Report, Retry};
pub use execution::{Code, Execution, Probe, Setup};
pub use finish::ParentClosePolicy;
pub use future::DurableFuture;
pub use op::entropy::{SYSTEM_CALL_PREFIX, SystemCall};
pub use op::kv::KvValue;
pub use opening::{Admission, Admitted, Ended, Opening, ParentLink, Past, UNKNOWN_EXECUTION, admit};
pub use poison::{Poison, poison};
pub use state::TraceLine;
pub use turn::{TurnInput, TurnOutput, run};
pub use version::stamp as new_stamp;
