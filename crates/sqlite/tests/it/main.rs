//! The store against the contract, against the specification, and against the things that happen to files.

mod factory;

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
