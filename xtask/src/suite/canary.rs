//! Payloads, passwords and URLs stay out of logs: processes of `crates/outlast/tests/it/canary` do everything with a canary
//! in each of them, at TRACE, and write it nowhere.

use super::Outcome;
use super::libtest;

/// The tests of this suite. Others can be loud, these read what is said.
pub(super) const TESTS: &str = "canary::";

pub(super) fn run() -> Result<Outcome, String> {
    libtest::with_postgres(|has_postgres| {
        // The packages of all tests, so that nothing is built twice; other binaries have no test of this name.
        let selection = [libtest::ALL_TESTS, &["--", TESTS]].concat();
        libtest::without_postgres(&selection, has_postgres)
    })
}
