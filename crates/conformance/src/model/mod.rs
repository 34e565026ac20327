//! Compares a store with the specification: runs sequences of all calls on both, and compares the answers and the whole content
//! (feature `model`).
//!
//! Random sequences have 60 calls on average. `OUTLAST_MODEL_CASES` sets their number and `OUTLAST_MODEL_SEED` their seed. For a long
//! run use
//! `OUTLAST_MODEL_SEED=$(date +%s) OUTLAST_MODEL_CASES=50000 cargo test --release -p outlast-sqlite --test it -- model::agrees`.
//! `OUTLAST_MODEL_SHRINKS` sets the number of shorter sequences that are tried after a failure; 0 only reports the failure.
//!
//! A store needs a [`Subject`], a function that opens it and runs a [`Sequence`] on it, and
//! [`model_tests!`](crate::model_tests).

mod apply;
mod build;
mod compare;
mod generate;
mod leases;
mod ops;
mod pair;
mod regressions;
mod reset;
mod sequence;
mod stories;
mod subject;
mod turn;

pub use ops::Damage;
pub use sequence::{Run, Sequence, agrees_with_the_specification, sequences};
pub use stories::check_story;
pub use subject::{DAMAGED, Hand, Stored, Subject};
