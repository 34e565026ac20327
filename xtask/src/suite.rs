//! The suites of `cargo xtask test`. A new suite is a row in [`SUITES`] and a function that returns an [`Outcome`].

mod chaos;
mod check;
mod deny;
mod examples;
mod features;
mod fsync_errors;
mod libtest;
mod programs;
mod quick;
pub(crate) mod report;
mod sim;
mod tally;

pub(crate) use quick::run as run_quick;
pub(crate) use tally::{Outcome, Tally};

/// A named part of the whole check.
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) group: Group,
    /// An error is a failure of the suite.
    pub(crate) run: fn() -> Result<Outcome, String>,
}

/// When a suite runs in a run of all suites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// Before all others: the suite finds simple mistakes, or builds the programs of the other suites.
    First,
    /// After the first suites, one suite at a time. These suites wait for timers, disks and servers most of their time.
    Waiting,
    /// In a second process with low priority, at the same time as the waiting suites: the suite needs processors only.
    Compute,
    /// In a second process with low priority, from the start: the suite builds in a target folder of its own, so it
    /// neither needs the first suites nor waits for the locks of their builds.
    Apart,
    /// Only when the suite is named.
    OnRequest,
}
use Group::{Apart, Compute, First, OnRequest, Waiting};

/// In the order of the summary.
pub(crate) const SUITES: &[Suite] = &[
    Suite { name: "fmt", group: First, about: "formatting", run: check::fmt },
    Suite { name: "tidy", group: First, about: "the rules of this repository", run: check::tidy },
    Suite {
        name: "deny",
        group: First,
        about: "licences, sources and duplicate versions of the dependencies",
        run: deny::run,
    },
    Suite { name: "clippy", group: First, about: "lints; warnings are errors", run: check::clippy },
    Suite { name: "build", group: First, about: "the programs of the following suites", run: programs::run },
    Suite { name: "tests", group: Waiting, about: "unit and integration tests", run: libtest::tests },
    Suite { name: "sim", group: Apart, about: "2,000 seeds of the simulator", run: sim::run },
    Suite {
        name: "canary",
        group: Waiting,
        about: "no payload, password or URL in any log, at TRACE",
        run: libtest::canary,
    },
    Suite { name: "chaos", group: Waiting, about: "at least 30 killed worker processes", run: chaos::run },
    Suite {
        name: "small-disks",
        group: Waiting,
        about: "a store on a full or read-only disk",
        run: libtest::root_tests,
    },
    Suite {
        name: "doc-tests",
        group: Compute,
        about: "the examples in the API documentation",
        run: libtest::doc_tests,
    },
    Suite {
        name: "docs",
        group: Compute,
        about: "the API documentation; warnings are errors",
        run: check::docs,
    },
    Suite {
        name: "examples",
        group: Waiting,
        about: "every example runs and exits with 0",
        run: examples::run,
    },
    Suite {
        name: "fsync-errors",
        group: Waiting,
        about: "a store on a disk whose syncs fail",
        run: fsync_errors::run,
    },
    Suite {
        name: "features",
        group: Compute,
        about: "every feature alone, every library alone",
        run: features::run,
    },
    Suite {
        name: "portable",
        group: OnRequest,
        about: "the tests that need neither Unix nor a service, for platforms other than Linux",
        run: libtest::portable,
    },
];
