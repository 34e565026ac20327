//! Damaged rows in a store that a runtime then opens. The result must be a typed error or the right output, never a
//! wrong output.

mod damage;
pub(crate) mod program;
mod silent;
mod store_run;
mod table;
mod template;

use crate::choices::Choices;
use crate::scratch::Scratch;
use damage::{Damage, apply_damage};
use outlast_model::ErrorDetails;
use outlast_sqlite::SqliteError;
use outlast_testkit::{panics, virtual_time};
use program::PROGRAMS;
use rusqlite::Connection;
use silent::{affects_second_instance, is_silent};
use store_run::{FinalState, StoreRun};
use template::{MOMENTS_MS, TIMEOUT, Template, template};

/// Damages up to three rows of a store that was used, and continues it.
pub fn row_corruption(data: &[u8]) {
    let choices = &mut Choices::new(data);
    let template = template(choices.below(PROGRAMS.len()), choices.below(MOMENTS_MS.len()));
    let scratch = Scratch::holding(&template.database);
    let damages = damage_rows(&scratch, choices);
    if damages.is_empty() {
        return;
    }
    let states = panics::forbid(|| virtual_time::run(run(&scratch, template)));
    // A store that does not open completes no instance.
    let Some([main, other]) = states else { return };
    let [expected_main, expected_other] = &template.expected;
    let affects_other = damages.iter().any(affects_second_instance);
    if !damages.iter().any(is_silent) {
        assert_right_or_refused(&main, expected_main, &damages);
        assert_right_or_refused(&other, expected_other, &damages);
    }
    if !affects_other {
        assert_eq!(&other, expected_other, "damage of one instance affected the other: {damages:#?}");
    }
}

fn damage_rows(scratch: &Scratch, choices: &mut Choices<'_>) -> Vec<Damage> {
    let raw = Connection::open(scratch.path()).expect("the file is a database");
    let mut damages = Vec::new();
    for _ in 0..3 {
        damages.extend(apply_damage(&raw, choices));
        if choices.is_empty() {
            break;
        }
    }
    damages
}

/// The final states of both instances; `None` for a store that cannot be opened.
async fn run(scratch: &Scratch, template: &Template) -> Option<[FinalState; 2]> {
    let store_run = match StoreRun::open(&scratch.url(), template.moment_ms, 2).await {
        Ok(store_run) => store_run,
        Err(SqliteError::Schema { .. } | SqliteError::Foreign { .. }) => return None,
        Err(error) => panic!("the error does not name the damage: {error:?}"),
    };
    let runtime = store_run.start_runtime(2).await;
    let states = store_run.finish(TIMEOUT).await;
    runtime.shutdown(Some(0)).await;
    Some(states)
}

/// An instance may not end, and it may fail with an infrastructure or configuration error, but it must not return
/// another output.
fn assert_right_or_refused(found: &FinalState, expected: &FinalState, damages: &[Damage]) {
    let is_right = match found {
        FinalState::Completed(_) | FinalState::Failed(ErrorDetails::Application { .. }) => found == expected,
        FinalState::Failed(_) | FinalState::NotEnded | FinalState::Missing | FinalState::Refused(_) => true,
    };
    assert!(is_right, "the instance ended as {found:?} instead of {expected:?} after {damages:#?}");
}
