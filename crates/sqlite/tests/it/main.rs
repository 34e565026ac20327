//! The store against the contract, against the specification, and against the things that happen to files.
// A test fails by panicking, and a child process reports by printing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod bad_input;
mod damage;
mod disk;
mod factory;
mod inline_processes;
mod keyed;
mod large;
mod mailbox;
mod model;
mod opening;
mod panics;
mod processes;
mod refusing;
mod room;
mod stress;
mod support;
mod takeover;
mod tokens;
mod upkeep;
mod waiting;

/// Everything on one thread, under paused time.
mod inline {
    use crate::factory::SqliteFactory;
    outlast_conformance::provider_validation_tests!(paused: SqliteFactory::inline());
}

/// As shipped: a writer thread, reader threads, a file, the machine's time.
mod threaded {
    use crate::factory::SqliteFactory;
    outlast_conformance::provider_validation_tests!(real: SqliteFactory::threaded());
}
