//! Finds a smaller world that fails in the same way.

use crate::plan::Plan;
use crate::world::{Cut, Outcome, Settings, run};

/// Leaves out instances and faults one by one, and keeps each cut that does not change which invariant breaks.
pub fn shrink(seed: u64, settings: &Settings) -> (Cut, Outcome) {
    let mut smallest = run(seed, settings);
    let mut cut = settings.cut.clone();
    let Some(wanted) = code(&smallest) else { return (cut, smallest) };
    let plan = Plan::of(seed);
    let mut candidates: Vec<Cut> = Vec::new();
    candidates.extend(
        plan.roots.iter().map(|root| Cut { roots: [root.instance.clone()].into(), ..Cut::default() }),
    );
    candidates
        .extend(plan.faults().into_iter().map(|fault| Cut { faults: [fault].into(), ..Cut::default() }));
    for candidate in candidates {
        let mut smaller = cut.clone();
        smaller.roots.extend(candidate.roots);
        smaller.faults.extend(candidate.faults);
        let outcome = run(seed, &Settings { cut: smaller.clone(), ..settings.clone() });
        if code(&outcome).as_ref() == Some(&wanted) {
            (cut, smallest) = (smaller, outcome);
        }
    }
    (cut, smallest)
}

/// The code of the broken invariant.
fn code(outcome: &Outcome) -> Option<String> {
    let first = outcome.failures.first()?;
    Some(first.split(':').next().unwrap_or(first).to_string())
}
