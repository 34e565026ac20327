//! Races that involve the store and the engine: messages that arrive while an instance continues as new, dropped waits, and
//! executions that older nodes started. Needs the feature `runtime`.
//!
//! A runtime is concurrent; here a node runs one turn at a time.

mod node;
mod program;
mod queues;
mod signals;
mod stamps;
mod starts;
mod transition;
mod turns;
mod unregistered;

pub use queues::{test_continue_as_new_queue_race_replay, test_queue_race_cancellation_replay};
pub use signals::test_positional_wait_race_replay;
pub use stamps::{test_legacy_queue_race_decision_preserved, test_queue_replay_version_stamp_roundtrip};
pub use starts::{test_continue_as_new_duplicate_start, test_duplicate_start_preserves_pinned_handler};
pub use transition::test_continue_as_new_transition_delivery;
pub use unregistered::{
    test_continue_as_new_poisoned_successor_is_own_execution, test_continue_as_new_unregistered_backoff,
};

/// The last stamp of the older rules: a dropped wait keeps its place until the end of the turn.
const LEGACY: &str = "0.1.30";
/// The first stamp of today's rules: a dropped wait gives its place up at once.
const IMMEDIATE: &str = "0.1.31";
