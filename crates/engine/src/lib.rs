//! The replay engine of Outlast. A turn is a function from [`TurnInput`] to [`TurnOutput`].
//!
//! The crate uses no tokio, clock, randomness, store or logging; its manifest cannot name them. A turn
//! takes a [`TurnInput`] and returns a [`TurnOutput`]. Read `turn.rs` first: [`run`] is the six steps of a turn, in the
//! order in which they run. Then read `op/mod.rs`: the operations that the steps dispatch to.

mod call_limits;
mod cancel;
mod combinator;
mod conclude;
mod context;
mod decide;
mod draft;
mod drops;
mod emit;
mod execution;
mod finish;
mod future;
mod history_summary;
pub mod layer;
mod op;
mod opening;
mod patch;
mod poison;
mod receive;
mod replay_error;
pub mod reset;
mod state;
mod turn;
mod version;
mod wake;
mod walk;
mod words;

pub use combinator::{Either2, Either3};
pub use context::OrchestrationContext;
pub use draft::{ChildEnded, Ending, Report, Retry};
pub use execution::{Code, Execution, Probe, Setup};
pub use future::DurableFuture;
pub use op::child::ParentClosePolicy;
pub use op::entropy::{SYSTEM_CALL_PREFIX, SystemCall};
pub use op::kv::KvValue;
pub use op::queue::START_NOTE_QUEUE;
pub use opening::{Admission, Admitted, Ended, Opening, ParentLink, Past, UNKNOWN_EXECUTION, admit};
pub use outlast_model::{PATCH_KEY_PREFIX, patch_of};
pub use poison::{Poison, poison};
pub use replay_error::MismatchPlace;
pub use state::TraceLine;
pub use turn::{TurnInput, TurnOutput, run};
pub use version::stamp as new_stamp;
pub use words::in_words;
