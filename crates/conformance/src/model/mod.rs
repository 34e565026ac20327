//! A store against the specification: sequences of every call, on both at once, with the answers and the whole content
//! compared (feature `model`).
//!
//! Random sequences have 60 calls on average. `OUTLAST_MODEL_CASES` sets their number and `OUTLAST_MODEL_SEED` chooses other
//! ones; a night is
//! `OUTLAST_MODEL_SEED=$(date +%s) OUTLAST_MODEL_CASES=50000 cargo test --release -p outlast-sqlite --test it -- model::agrees`.
//! `OUTLAST_MODEL_SHRINKS` sets how many shorter sequences are tried when one fails; whoever only wants to know that it fails
//! sets it to 0.
//!
//! A store takes part by a [`Subject`], a function that opens one and runs a [`Sequence`] on it, and
//! [`model_tests!`](crate::model_tests).

mod apply;
mod build;
mod compare;
mod generate;
mod leases;
mod ops;
mod pair;
mod regressions;
mod sequence;
mod stories;
mod subject;
mod turn;

pub use ops::Damage;
pub use sequence::{Run, Sequence, agrees_with_the_specification, sequences};
pub use stories::check_story;
pub use subject::{DAMAGED, Hand, Stored, Subject};
