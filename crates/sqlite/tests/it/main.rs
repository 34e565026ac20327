//! Tests of the store: the contract, the model of the specification, and failures of files, disks and processes.
// A test fails by panicking, and a child process reports by printing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod bad_input;
mod busy;
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

/// The contract and the model on inline stores, under paused time.
mod inline {
    use crate::factory::SqliteFactory;
    outlast_conformance::provider_validation_tests!(paused: SqliteFactory::inline());
}

/// The contract with the default options: a writer thread, reader threads, a file, and the clock of the machine.
mod threaded {
    use crate::factory::SqliteFactory;
    outlast_conformance::provider_validation_tests!(real: SqliteFactory::threaded());
}
