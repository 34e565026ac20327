//! The generated sequences of the tests find every seeded defect of the scheduler.

use super::tests::{events, left_after};
use outlast_model::defect::{self, Defect};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The defects that `outlast-model` lists for this store.
const DEFECTS: [Defect; 5] = [
    Defect::ArrivalLost,
    Defect::LocalCommitUnseen,
    Defect::NotificationUnseen,
    Defect::PollSeesLaterCommits,
    Defect::PauseNeverEnds,
];

#[test]
fn every_seeded_defect_is_found_within_2_000_sequences() {
    for defect in DEFECTS {
        let mut runner = TestRunner::deterministic();
        let mut fails = || {
            let events = events().new_tree(&mut runner).unwrap().current();
            let _active = defect::activate(defect);
            match catch_unwind(AssertUnwindSafe(|| left_after(events))) {
                Ok((requests, turns, fetches)) => requests > 0 || (turns > 0 && fetches > 0),
                Err(_) => true,
            }
        };
        assert!((1..=2_000).any(|_| fails()), "{defect:?} is not found");
    }
}
