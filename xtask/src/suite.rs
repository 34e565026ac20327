//! The suites of `cargo xtask test`. A new one is a row in [`SUITES`] and a function that returns an [`Outcome`].

mod canary;
mod chaos;
mod check;
mod deny;
mod examples;
mod features;
mod fsync_errors;
mod libtest;
pub(crate) mod report;
mod sim;
mod tally;

pub(crate) use tally::{Outcome, Tally};

/// A named part of the whole check.
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// An error is a failure of the suite. A tool that this machine lacks is [`Outcome::Skipped`].
    pub(crate) run: fn() -> Result<Outcome, String>,
}

/// Suites that run only when they are named.
pub(crate) const ON_REQUEST: &[Suite] = &[Suite {
    name: "portable",
    about: "the tests that need neither Unix nor a service, for platforms that are not Linux",
    run: libtest::portable,
}];

/// Cheap ones first: a contributor should learn about a missing comma before the tests are linked.
pub(crate) const SUITES: &[Suite] = &[
    Suite { name: "fmt", about: "formatting", run: check::fmt },
    Suite { name: "tidy", about: "the rules of this repository", run: check::tidy },
    Suite { name: "deny", about: "licences, sources and duplicates of what is built in", run: deny::run },
    Suite { name: "clippy", about: "lints, warnings refused", run: check::clippy },
    Suite { name: "tests", about: "unit and integration tests", run: libtest::tests },
    Suite { name: "sim", about: "simulated worlds full of faults, 2,000 seeds", run: sim::run },
    Suite { name: "canary", about: "no payload, password or URL in any log, at TRACE", run: canary::run },
    Suite { name: "chaos", about: "worker processes that are killed, 30 and more", run: chaos::run },
    Suite { name: "small-disks", about: "a store on a full or read-only disk", run: libtest::root_tests },
    Suite { name: "doc-tests", about: "the examples in the API documentation", run: libtest::doc_tests },
    Suite { name: "docs", about: "the API documentation, warnings refused", run: check::docs },
    Suite { name: "examples", about: "every example runs and exits with 0", run: examples::run },
    Suite { name: "fsync-errors", about: "a store on a disk whose syncs fail", run: fsync_errors::run },
    Suite { name: "features", about: "every feature alone, every library alone", run: features::run },
];
