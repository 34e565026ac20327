//! Pins the JSON shapes byte for byte. Stores written by one version are read by the next, and by other programs that
//! speak the same contract: a change that makes one of these rows fail is a change of the stored format.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod decoding;
mod errors;
mod events;
mod golden;
mod stats;
mod strings;
mod work_items;
