//! Payloads, passwords and URLs stay out of logs: a process of `crates/outlast/tests/it/canary` does everything with a canary
//! in each of them, at TRACE, and writes it nowhere.

use super::libtest;
use super::{Outcome, Tally};

/// The tests of this suite. Others can be loud, these read what is said.
pub(super) const TESTS: &str = "canary::";

pub(super) fn run() -> Result<Outcome, String> {
    let tally: Tally = libtest::some(&["-p", "outlast", "--all-features", "--test", "it"], TESTS)?;
    Ok(Outcome::Ran(tally))
}
