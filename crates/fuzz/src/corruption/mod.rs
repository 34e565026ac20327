//! Damaged rows in a store that a runtime then opens: a typed error or the right result, never a wrong completion.

mod damage;
mod program;
mod silent;
mod table;
mod template;
mod world;

use crate::bytes::Bytes;
use crate::scratch::Scratch;
use damage::{Damage, inflict};
use outlast_model::ErrorDetails;
use outlast_sqlite::SqliteError;
use outlast_testkit::{panics, virtual_time};
use program::PROGRAMS;
use rusqlite::Connection;
use silent::{is_silent, touches_bystander};
use template::{MOMENTS_MS, PATIENCE, Template, template};
use world::{Stand, World};

/// Damages up to three rows of a store that really ran, and runs it on.
pub fn row_corruption(data: &[u8]) {
    let bytes = &mut Bytes::new(data);
    let template = template(bytes.below(PROGRAMS.len()), bytes.below(MOMENTS_MS.len()));
    let scratch = Scratch::holding(&template.database);
    let inflicted = damaged(&scratch, bytes);
    if inflicted.is_empty() {
        return;
    }
    let stands = panics::forbid(|| virtual_time::run(run(&scratch, template)));
    // A store that is not opened completes nothing.
    let Some([main, other]) = stands else { return };
    let [expected_main, expected_other] = &template.expected;
    let concerns_other = inflicted.iter().any(touches_bystander);
    if !inflicted.iter().any(is_silent) {
        right_or_refused(&main, expected_main, &inflicted);
        right_or_refused(&other, expected_other, &inflicted);
    }
    if !concerns_other {
        assert_eq!(&other, expected_other, "damage of one instance reached another: {inflicted:#?}");
    }
}

fn damaged(scratch: &Scratch, bytes: &mut Bytes<'_>) -> Vec<Damage> {
    let raw = Connection::open(scratch.path()).expect("it is a database");
    let mut inflicted = Vec::new();
    for _ in 0..3 {
        inflicted.extend(inflict(&raw, bytes));
        if bytes.is_empty() {
            break;
        }
    }
    inflicted
}

/// How both instances stand in the end; `None` for a store that cannot be opened.
async fn run(scratch: &Scratch, template: &Template) -> Option<[Stand; 2]> {
    let world = match World::open(&scratch.url(), template.moment_ms, 2).await {
        Ok(world) => world,
        Err(SqliteError::Schema { .. } | SqliteError::Foreign { .. }) => return None,
        Err(error) => panic!("not the kind of error that says what is wrong: {error:?}"),
    };
    let runtime = world.start_runtime(2).await;
    let stands = world.finish(PATIENCE).await;
    runtime.shutdown(Some(0)).await;
    Some(stands)
}

/// An instance may stay where it is, and it may fail because of what is stored, but it does not return something else.
fn right_or_refused(found: &Stand, expected: &Stand, inflicted: &[Damage]) {
    let is_right = match found {
        Stand::Completed(_) | Stand::Failed(ErrorDetails::Application { .. }) => found == expected,
        Stand::Failed(_) | Stand::Open | Stand::Missing | Stand::Refused(_) => true,
    };
    assert!(is_right, "it ended with {found:?} instead of {expected:?} after {inflicted:#?}");
}
