//! Seeded defects of holds, resets and the audit (feature `test-hooks`): the validation that `testdata/store-defects.txt` names fails with
//! the defect.
#![cfg(feature = "test-hooks")]

use crate::factory::PostgresFactory;
use outlast_conformance::{Validation, ValidationOutcome, validations};
use outlast_model::defect::{self, Defect, Judge};

const FILE: &str = include_str!("../../../../testdata/store-defects.txt");

fn validation_of(defect: Defect) -> Validation {
    let name = format!("{defect:?} ");
    let named = FILE.lines().find_map(|line| line.strip_prefix(&name));
    let named = named.unwrap_or_else(|| panic!("testdata/store-defects.txt has no line for {defect:?}"));
    let found = validations().into_iter().find(|validation| format!("{validation:?}") == named);
    found.unwrap_or_else(|| panic!("no validation {named}"))
}

#[tokio::test]
async fn each_seeded_defect_of_the_store_fails_the_validation_that_the_file_names() {
    let of_the_store = Defect::ALL.iter().copied().filter(|defect| defect.judge() == Judge::Postgres);
    for defect in of_the_store {
        let validation = validation_of(defect);
        let sound = validation.outcome(&PostgresFactory::new()).await;
        assert_eq!(sound, ValidationOutcome::Passed, "{validation:?} without a defect");
        let active = defect::activate(defect);
        let outcome = validation.outcome(&PostgresFactory::new()).await;
        drop(active);
        assert!(matches!(outcome, ValidationOutcome::Failed(_)), "{defect:?} is not found by {validation:?}");
        println!("{defect:?}: {outcome:?}");
    }
}
