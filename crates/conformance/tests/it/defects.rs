//! The suite must be able to fail: every seeded defect is caught by at least one validation.

use crate::factory::MemoryFactory;
use outlast_conformance::{Validation, ValidationOutcome, validations};
use outlast_memory::{Defect, Rules};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{panic, thread};

const THREADS: usize = 2;
/// The name of threads whose panics are not printed: validations fail on them by the thousand.
const QUIET: &str = "defects";

/// Prints the table defect -> validations that caught it (`--nocapture` shows it).
#[test]
fn every_defect_is_caught() {
    let sound = run_suite(Rules::default());
    let unsound: Vec<_> = sound.iter().filter(|(_, outcome)| *outcome != ValidationOutcome::Passed).collect();
    assert!(unsound.is_empty(), "the contract itself must pass, or a failure proves nothing: {unsound:#?}");

    let caught = in_parallel(Defect::ALL, |defect| failures(Rules::with(*defect)));
    let table: Vec<_> = Defect::ALL.iter().zip(&caught).collect();
    for (defect, validations) in &table {
        let shown = validations.iter().take(4).cloned().collect::<Vec<_>>().join(", ");
        println!("{defect:?} [{}] caught by {}: {shown}", defect.source(), validations.len());
    }
    let missed: Vec<_> = table.iter().filter(|(_, validations)| validations.is_empty()).collect();
    assert!(missed.is_empty(), "no validation catches {missed:?}");
}

#[test]
fn there_are_at_least_forty_defects_and_half_of_them_really_happened() {
    let real = Defect::ALL.iter().filter(|defect| !defect.source().is_empty()).count();
    assert!(Defect::ALL.len() >= 40 && real >= 20, "{} defects, {real} of them real", Defect::ALL.len());
}

fn failures(rules: Rules) -> Vec<String> {
    let failed = |(name, outcome)| matches!(outcome, ValidationOutcome::Failed(_)).then_some(name);
    run_suite(rules).into_iter().filter_map(failed).collect()
}

/// Each validation on a runtime, a clock and stores of its own.
fn run_suite(rules: Rules) -> Vec<(String, ValidationOutcome)> {
    let run = |validation: Validation| {
        let factory = MemoryFactory::with_rules(rules);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        (format!("{validation:?}"), runtime.unwrap().block_on(validation.outcome(&factory)))
    };
    validations().into_iter().map(run).collect()
}

/// The results in the order of the inputs, computed on quiet threads.
fn in_parallel<T: Sync, R: Send + Sync>(inputs: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let loud = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if thread::current().name() != Some(QUIET) {
            loud(info);
        }
    }));
    let jobs: Vec<(&T, OnceLock<R>)> = inputs.iter().map(|input| (input, OnceLock::new())).collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        while let Some((input, result)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            result.get_or_init(|| work(input));
        }
    };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            thread::Builder::new().name(QUIET.to_string()).spawn_scoped(scope, worker).unwrap();
        }
    });
    jobs.into_iter().map(|(_, result)| result.into_inner().expect("every job was done")).collect()
}
