//! The generated sequences find every seeded defect of the scheduler. The file `testdata/scheduler-defects.txt` says what found each one; the
//! page of the defects has its lines.

use super::sequences::{broken, events};
use outlast_model::defect::{self, Defect, Judge};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/scheduler-defects.txt");

const TOP: &str = "\
# Seeded defects of the PostgreSQL scheduler: the number of the generated sequence that finds each one, and the property that it breaks.
# `OUTLAST_BLESS=1 cargo test -p outlast-postgres --all-features seeded_defect` writes this file, `cargo xtask sim --score 0..2000 --page
# docs/internals/defects.md` the page.
";

#[test]
fn every_seeded_defect_is_found_within_2_000_sequences() {
    let of_the_scheduler = Defect::ALL
        .iter()
        .filter(|defect| matches!(defect.judge(), Judge::Sequences | Judge::SequencesAndWorlds));
    let mut expected = TOP.to_string();
    for defect in of_the_scheduler {
        let (number, property) =
            first_failure(*defect).unwrap_or_else(|| panic!("{defect:?} is not found in 2,000 sequences"));
        expected.push_str(&format!("{defect:?} {number} {property}\n"));
    }
    if std::env::var_os("OUTLAST_BLESS").is_some() {
        fs::write(FILE, &expected).unwrap();
    }
    let stored = fs::read_to_string(FILE).unwrap_or_default();
    assert_eq!(stored, expected, "OUTLAST_BLESS=1 writes testdata/scheduler-defects.txt");
}

/// The number of the first sequence that breaks a property with this defect, and the property.
fn first_failure(defect: Defect) -> Option<(usize, &'static str)> {
    let mut runner = TestRunner::deterministic();
    let strategy = events();
    (1..=2_000).find_map(|number| {
        let events = strategy.new_tree(&mut runner).expect("every sequence is accepted").current();
        let _active = defect::activate(defect);
        let broken = catch_unwind(AssertUnwindSafe(|| broken(events))).unwrap_or(Some("no code panics"));
        Some((number, broken?))
    })
}
