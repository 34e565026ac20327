//! Each validation of store and engine must fail on the defects of its rule. `defects.rs` checks the reverse: every defect is caught
//! by a validation.

use crate::factory::MemoryFactory;
use outlast_conformance::{ValidationOutcome, validations};
use outlast_memory::Defect::{self, *};
use outlast_memory::Rules;

const FITTING: &[(&str, &[Defect])] = &[
    ("test_duplicate_start_preserves_pinned_handler", &[StartRenamesInstance, OneMessagePerFetch]),
    ("test_continue_as_new_unregistered_backoff", &[AbandonLosesDelay, AttemptsNotCounted]),
    (
        "test_continue_as_new_poisoned_successor_is_own_execution",
        &[SuccessorInPredecessor, AttemptsNotCounted],
    ),
    ("test_continue_as_new_duplicate_start", &[AckDeletesLateMessages, SuccessorInPredecessor]),
    (
        "test_continue_as_new_transition_delivery",
        &[AbandonTouchesAllRows, AbandonLosesDelay, CarriedMessagesLost],
    ),
    ("test_queue_race_cancellation_replay", &[EventsRestamped, WorkAckLosesCompletion]),
    ("test_continue_as_new_queue_race_replay", &[CarriedMessagesLost, SuccessorInPredecessor]),
    ("test_queue_replay_version_stamp_roundtrip", &[StampsRewritten]),
    ("test_positional_wait_race_replay", &[OneMessagePerFetch, StampsRewritten]),
    ("test_legacy_queue_race_decision_preserved", &[StampsRewritten, FilterIgnored, UnpinnedExcluded]),
];

#[test]
fn each_race_validation_fails_on_its_defects() {
    let races: Vec<_> = validations().into_iter().filter(|race| race.category == "race_replay").collect();
    let names: Vec<&str> = races.iter().map(|race| race.name).collect();
    assert_eq!(names, FITTING.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    for (race, (_, defects)) in races.iter().zip(FITTING) {
        for defect in *defects {
            let factory = MemoryFactory::with_rules(Rules::with(*defect));
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
            let outcome = runtime.unwrap().block_on(race.outcome(&factory));
            assert!(matches!(outcome, ValidationOutcome::Failed(_)), "{race:?} passes with {defect:?}");
        }
    }
}
