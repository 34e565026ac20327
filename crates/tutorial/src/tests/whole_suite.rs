//! The suite as one report.

use super::factory::Factory;
use outlast_conformance::{ValidationOutcome, run_all_validations, validations};

// guide: whole-suite
/// Not one validation fails, and not one is left out as not applicable.
#[tokio::test(start_paused = true)]
async fn the_store_passes_every_validation_of_the_suite() {
    let report = run_all_validations(&Factory::default()).await;
    let other = report.results.iter().filter(|result| result.outcome != ValidationOutcome::Passed);
    assert_eq!(other.count(), 0, "{report}");
    assert_eq!(report.results.len(), validations().len());
}
// guide: end
