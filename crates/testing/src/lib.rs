//! Tests of Outlast programs: plain `#[test]` functions, without services and without waiting. Users reach this crate as
//! `outlast::testing`, by a feature for dev-dependencies.
//!
//! | item | for |
//! |---|---|
//! | [`Test`] | a test of one orchestration: its module, mocks, messages, and the fake of the world outside |
//! | [`Test::run`], [`Run`] | one instance under virtual time, and assertions about its result, calls and history |
//! | [`Test::start`], [`Running`] | an instance that the test drives step by step |
//! | [`Test::crash_everywhere`], [`Test::fail_everywhere`], [`Sweep`] | the same instance with one fault at every moment |
//! | [`Test::cancel_everywhere`] | the same instance, cancelled at every moment |
//! | [`ReplayCheck`] | recorded histories against the present code |
//!
//! A run has one store in memory. Its processes are tokio runtimes with a paused clock, one after the other: a crash drops the tokio
//! runtime with all its tasks, ends the leases that it held, and the next process goes on at the same virtual time. Leases and polls
//! have no timers of their own, so that a year of virtual time takes milliseconds.
//!
//! Every turn of a run without faults is run a second time from its history. Code that decides otherwise then fails the test.
//!
//! | file | holds |
//! |---|---|
//! | `test.rs`, `mock.rs`, `spec.rs` | the test as the user writes it, and without its types |
//! | `test_run.rs`, `shared.rs` | one run: its processes, and the state that outlives them |
//! | `store.rs`, `fault.rs`, `probe.rs`, `poll_gate.rs` | the store as a process sees it, with the fault of a sweep |
//! | `sweep.rs`, `cancel_sweep.rs` | all schedules of a sweep, and its report |
//! | `cold.rs`, `recorded.rs`, `replay_check.rs` | turns and histories that run again on a fresh call of the code, by `outlast_runtime::check` |
//! | `story.rs`, `snapshot.rs`, `run.rs` | histories as text, files, assertions |

mod bodies;
mod cancel_sweep;
mod fault;
mod mock;
mod profile;
mod recorded;
mod replay_check;
mod run;
mod running;
mod shared;
mod snapshot;
mod spec;
mod store;
mod story;
mod sweep;
mod test;
mod test_run;
mod time;
mod trouble;
mod virtual_time;

// The parts that the simulator of this repository shares. They are no part of the interface for users.
#[doc(hidden)]
pub mod cold;
#[doc(hidden)]
pub mod parallel;
#[doc(hidden)]
pub mod poll_gate;
#[doc(hidden)]
pub mod probe;

pub use mock::MockCall;
pub use outlast_author::time::{days, hours, minutes, seconds};
pub use recorded::Divergence;
pub use replay_check::{ReplayCheck, ReplayReport};
pub use run::{Calls, Run};
pub use running::Running;
pub use story::story;
pub use sweep::{Sweep, SweepFailure};
pub use test::{ByReference, ByValue, Ledger, Test, ToSend};
pub use time::EPOCH_MS;
pub use trouble::Trouble;
