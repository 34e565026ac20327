//! The suite must be able to fail: every seeded defect is caught by at least one validation.

use crate::factory::MemoryFactory;
use outlast_conformance::{ValidationOutcome, validations};
use outlast_memory::{Defect, Rules};
use std::panic;

/// Prints the table defect -> validations that caught it (`--nocapture` shows it).
#[test]
fn every_defect_is_caught() {
    let quiet = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let caught: Vec<(Defect, Vec<String>)> =
        Defect::ALL.iter().map(|defect| (*defect, caught_by(*defect))).collect();
    panic::set_hook(quiet);

    for (defect, validations) in &caught {
        let shown = validations.iter().take(4).cloned().collect::<Vec<_>>().join(", ");
        println!("{defect:?} [{}] caught by {}: {shown}", defect.source(), validations.len());
    }
    let missed: Vec<Defect> =
        caught.iter().filter(|(_, validations)| validations.is_empty()).map(|(defect, _)| *defect).collect();
    assert!(missed.is_empty(), "no validation catches {missed:?}");
}

#[test]
fn there_are_at_least_forty_defects_and_half_of_them_really_happened() {
    let real = Defect::ALL.iter().filter(|defect| !defect.source().is_empty()).count();
    assert!(Defect::ALL.len() >= 40 && real >= 20, "{} defects, {real} of them real", Defect::ALL.len());
}

fn caught_by(defect: Defect) -> Vec<String> {
    let mut caught = Vec::new();
    for validation in validations() {
        let factory = MemoryFactory::with_rules(Rules::with(defect));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        if let ValidationOutcome::Failed(_) = runtime.unwrap().block_on(validation.outcome(&factory)) {
            caught.push(format!("{validation:?}"));
        }
    }
    caught
}
