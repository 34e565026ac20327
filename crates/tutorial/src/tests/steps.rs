//! Which categories of the suite pass after which step of the tutorial.

use super::up_to::UpToFactory;
use outlast_conformance::{ValidationOutcome, validations};
use std::collections::BTreeSet;

// guide: steps
/// Each step, and the categories whose validations all pass from this step on.
const STEPS: &[(u32, &[&str])] = &[
    (4, &["keyed", "multi_execution"]),
    (5, &["capability_filtering", "families", "message_order", "orphans", "warm_fetch"]),
    (6, &["batch_fetch", "instance_locking", "lock_expiration", "poison_message", "queue_semantics"]),
    (6, &["message_bound", "noted_failures", "tag_filtering"]),
    (7, &["sessions"]),
    (8, &["atomicity", "custom_status", "error_handling", "fencing", "instance_creation"]),
    (8, &["bad_input", "eager_start", "fused_outcomes", "outcome", "race_replay", "run_ahead"]),
    (9, &["bulk_deletion", "cancellation", "dead_letters", "deletion", "kv_store", "listing"]),
    (9, &["holds", "management", "nodes", "pending", "prune", "resets", "retention"]),
    (9, &["start_policy", "transfers", "traps"]),
    (10, &["dropped_fetch", "leases", "long_polling", "requeues", "waiting"]),
];
// guide: end

async fn passes(category: &str, step: u32) -> bool {
    let factory = UpToFactory { step, ..UpToFactory::default() };
    for validation in validations().into_iter().filter(|validation| validation.category == category) {
        if validation.outcome(&factory).await != ValidationOutcome::Passed {
            return false;
        }
    }
    true
}

#[tokio::test(start_paused = true)]
async fn each_tutorial_step_adds_the_categories_of_its_table_row() {
    let mut wrong = Vec::new();
    for (step, categories) in STEPS {
        for category in *categories {
            if !passes(category, *step).await {
                wrong.push(format!("{category} does not pass after step {step}"));
            }
            if passes(category, *step - 1).await {
                wrong.push(format!("{category} passes before step {step}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_steps_name_every_category_once() {
    let named: Vec<&str> = STEPS.iter().flat_map(|(_, categories)| categories.iter().copied()).collect();
    let all: BTreeSet<&str> = validations().iter().map(|validation| validation.category).collect();
    assert_eq!(named.len(), all.len());
    assert_eq!(named.into_iter().collect::<BTreeSet<_>>(), all);
}
