//! The dispatchers of a runtime: each fetches a turn or an activity, processes it, and commits it or gives it back.

mod activity;
mod backoff;
mod catch_panic;
mod commit;
pub(crate) mod eager;
#[cfg(test)]
mod fixture;
pub(crate) mod further_slots;
pub(crate) mod gather;
mod history;
pub(crate) mod lease;
mod noted;
pub(crate) mod older_code;
pub(crate) mod park_instance;
pub(crate) mod paused;
pub(crate) mod permits;
pub(crate) mod retries;
pub(crate) mod run_ahead;
pub(crate) mod run_ahead_backoff;
pub(crate) mod running;
pub(crate) mod session;
mod skip;
mod slot;
pub(crate) mod start;
pub(crate) mod store_time;
mod turn;
mod undecodable;
mod unregistered;
pub(crate) mod unregistered_pause;
pub(crate) mod warm;

pub(crate) use activity::ActivityQueue;
pub(crate) use slot::run_slots;
pub(crate) use turn::{TurnQueue, call};
