//! Programs written for duroxide 0.1.32, compiled against Outlast under the name `duroxide`.
//!
//! The visible parts of closed types (fields, variants, derives, signatures) are written out here, so that a change that would break
//! outside code breaks this package first.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod admin_wrapper;
mod author;
// The page has half a line for it.
#[rustfmt::skip]
mod coming_from;
mod derives;
mod dropped_child;
mod first_provider;
mod glob;
mod literals;
mod matches;
mod missing_successor;
mod paths;
mod programs;
mod signatures;
#[cfg(feature = "sqlx-coexists")]
mod sqlx_coexists;
mod stress;
mod wrapper;
