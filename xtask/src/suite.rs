//! The suites of `cargo xtask test`. A new suite is a row in [`SUITES`] and a function that returns a [`Tally`].

mod chaos;
mod check;
mod deny;
mod features;
mod fsync_errors;
mod libtest;
mod programs;
mod quick;
pub(crate) mod report;
mod sim;
mod tally;

pub(crate) use quick::run as run_quick;
use report::Line;
pub(crate) use tally::Tally;

/// A named part of the whole check.
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) group: Group,
    check: fn() -> Result<Tally, String>,
}

impl Suite {
    const fn new(
        name: &'static str,
        group: Group,
        about: &'static str,
        check: fn() -> Result<Tally, String>,
    ) -> Self {
        Self { name, about, group, check }
    }

    pub(crate) fn run(&self) -> Line {
        println!("\n=== {}: {} ===", self.name, self.about);
        Line::of(self.name, self.check)
    }
}

/// When a suite runs in a run of all suites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// Before all other suites: the suite finds simple mistakes, or builds the programs of the other suites.
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
    Suite::new("fmt", First, "formatting", check::fmt),
    Suite::new("tidy", First, "the rules of this repository", check::tidy),
    Suite::new("deny", First, "licences, sources and duplicate versions of the dependencies", deny::run),
    Suite::new("clippy", First, "lints; warnings are errors", check::clippy),
    Suite::new("build", First, "the programs of the following suites", programs::run),
    Suite::new("tests", Waiting, "unit and integration tests", libtest::tests),
    Suite::new("browser", Waiting, "the dashboard and the page of the demo in Chromium", check::browser),
    Suite::new("sim", Apart, "2,000 seeds of the simulator", sim::run),
    Suite::new("canary", Waiting, "no payload, password or URL in any log, at TRACE", libtest::canary),
    Suite::new("chaos", Waiting, "at least 30 killed worker processes", chaos::run),
    Suite::new("small-disks", Waiting, "a store on a full or read-only disk", libtest::root_tests),
    Suite::new("doc-tests", Compute, "the examples in the API documentation", libtest::doc_tests),
    Suite::new("docs", Compute, "the API documentation; warnings are errors", check::docs),
    Suite::new("examples", Waiting, "every example runs and exits with 0", check::examples),
    Suite::new("fsync-errors", Waiting, "a store on a disk whose syncs fail", fsync_errors::run),
    Suite::new("features", Compute, "every feature alone, every library alone", features::run),
    Suite::new(
        "portable",
        OnRequest,
        "the tests that need neither Unix nor a service, for platforms other than Linux",
        libtest::portable,
    ),
];
