//! The proof: the whole validation suite, the suite step by step, and the file.

mod factory;
mod file;
mod steps;
mod up_to;
mod whole_suite;

// guide: one-line
/// One test per validation, in one module per category.
mod contract {
    use super::factory::Factory;
    outlast_conformance::provider_validation_tests!(paused: Factory::default());
}
// guide: end
