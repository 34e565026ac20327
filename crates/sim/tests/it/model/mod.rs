//! Models of the protocols. The checker visits every order of events, not a sample.
//!
//! | model | of |
//! |---|---|
//! | [`lease`] | turns: fetch, renew, commit, give back |
//! | [`work`] | activities and their sessions |
//! | [`child`] | parents, children, cancellation, continue-as-new |
//!
//! Each protocol without a bug must keep all its properties, and each known bug must break the properties listed beside
//! it. `OUTLAST_MODEL_DEPTH=deep` visits more than a million states of each model; `OUTLAST_MODEL_JSON=FILE` writes the
//! figures. [`rules`] lists the rules that the models require of a store.

// A test fails by panicking, and prints its findings with `--nocapture`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod child;
mod lease;
mod rules;
mod search;
mod work;

use search::{ModelReport, Protocol, check_model};
use std::sync::LazyLock;

/// Checked once for all tests.
static LEASE: LazyLock<ModelReport> = LazyLock::new(|| check_model::<lease::Leases>("lease"));
static WORK: LazyLock<ModelReport> = LazyLock::new(|| check_model::<work::Activities>("work"));
static CHILD: LazyLock<ModelReport> = LazyLock::new(|| check_model::<child::Family>("child"));

fn assert_sound(report: &ModelReport) {
    assert_eq!(report.broken, [], "the protocol without a bug");
    assert_eq!(report.never_happened, [""; 0], "a model in which nothing happens keeps every property");
}

fn assert_all_found<P: Protocol>(report: &ModelReport) {
    assert_eq!(report.missed, []);
    assert_eq!(report.bugs_found, P::BUGS.len());
}

#[test]
fn leases_keep_every_property() {
    assert_sound(&LEASE);
}

#[test]
fn every_bug_of_leases_breaks_its_properties() {
    assert_all_found::<lease::Leases>(&LEASE);
}

#[test]
fn activities_keep_every_property() {
    assert_sound(&WORK);
}

#[test]
fn every_bug_of_activities_breaks_its_properties() {
    assert_all_found::<work::Activities>(&WORK);
}

#[test]
fn parents_and_children_keep_every_property() {
    assert_sound(&CHILD);
}

#[test]
fn every_bug_of_parents_and_children_breaks_its_properties() {
    assert_all_found::<child::Family>(&CHILD);
}

/// A small number of states would mean that a bound excludes most of the protocol.
#[test]
fn models_have_at_least_the_required_states() {
    let models = [&LEASE, &WORK, &CHILD];
    let least = search::Depth::asked_for().least_states();
    assert!(models.iter().all(|report| report.states >= least), "{:?}", models.map(|report| report.states));
    if let Ok(file) = std::env::var("OUTLAST_MODEL_JSON") {
        let figures = serde_json::json!({
            "lease_states": LEASE.states,
            "work_states": WORK.states,
            "child_states": CHILD.states,
            "bugs_found": models.iter().map(|report| report.bugs_found).sum::<usize>(),
            "bugs": models.iter().map(|report| report.bugs).sum::<usize>(),
            "properties_broken": models.iter().map(|report| report.broken.len()).sum::<usize>(),
        });
        std::fs::write(&file, format!("{figures:#}\n")).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
}
