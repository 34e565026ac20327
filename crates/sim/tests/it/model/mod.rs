//! The protocols as models: every order in which things can happen is looked at, not a sample of them.
//!
//! | model | of |
//! |---|---|
//! | [`lease`] | turns: fetch, renew, commit, give back |
//! | [`work`] | activities and their sessions |
//! | [`child`] | parents, children, cancellation, continue-as-new |
//!
//! Each protocol as it is must keep all of its properties, and each known way to get it wrong must break those that are
//! written beside it. `OUTLAST_MODEL_DEPTH=deep` looks further, at more than a million states for each model;
//! `OUTLAST_MODEL_JSON=FILE` writes the figures down. What the models ask of a store is in [`rules`].

// A test fails by panicking, and shows with `--nocapture` what it has seen.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod child;
mod lease;
mod rules;
mod search;
mod work;

use search::{Protocol, Seen, look_at};
use std::sync::LazyLock;

/// Looked at once for all tests.
static LEASE: LazyLock<Seen> = LazyLock::new(|| look_at::<lease::Leases>("lease"));
static WORK: LazyLock<Seen> = LazyLock::new(|| look_at::<work::Activities>("work"));
static CHILD: LazyLock<Seen> = LazyLock::new(|| look_at::<child::Family>("child"));

fn assert_sound(seen: &Seen) {
    assert_eq!(seen.broken, [], "the protocol as it is");
    assert_eq!(seen.never_happened, [""; 0], "a model in which nothing happens keeps every property");
}

fn assert_all_found<P: Protocol>(seen: &Seen) {
    assert_eq!(seen.missed, []);
    assert_eq!(seen.bugs_found, P::BUGS.len());
}

#[test]
fn leases_are_sound() {
    assert_sound(&LEASE);
}

#[test]
fn every_bug_of_leases_is_found() {
    assert_all_found::<lease::Leases>(&LEASE);
}

#[test]
fn activities_are_sound() {
    assert_sound(&WORK);
}

#[test]
fn every_bug_of_activities_is_found() {
    assert_all_found::<work::Activities>(&WORK);
}

#[test]
fn families_are_sound() {
    assert_sound(&CHILD);
}

#[test]
fn every_bug_of_families_is_found() {
    assert_all_found::<child::Family>(&CHILD);
}

/// Few states would mean that a bound has shut most of a protocol out.
#[test]
fn the_models_are_as_large_as_they_were_asked_to_be() {
    let models = [&LEASE, &WORK, &CHILD];
    let least = search::Depth::asked_for().least_states();
    assert!(models.iter().all(|seen| seen.states >= least), "{:?}", models.map(|seen| seen.states));
    if let Ok(file) = std::env::var("OUTLAST_MODEL_JSON") {
        let figures = serde_json::json!({
            "lease_states": LEASE.states,
            "work_states": WORK.states,
            "child_states": CHILD.states,
            "bugs_found": models.iter().map(|seen| seen.bugs_found).sum::<usize>(),
            "bugs": models.iter().map(|seen| seen.bugs).sum::<usize>(),
            "properties_broken": models.iter().map(|seen| seen.broken.len()).sum::<usize>(),
        });
        std::fs::write(&file, format!("{figures:#}\n")).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
}
