//! Random inputs for every target. `cargo xtask fuzz` searches deeper.
//!
//! `OUTLAST_FUZZ_CASES` sets the number of inputs of each target, `OUTLAST_FUZZ_SEED` their seed.

use outlast_fuzz::TARGETS;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use std::path::Path;
use std::str::FromStr;

fn setting<T: FromStr>(name: &str, default: T) -> T {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config {
        cases: setting("OUTLAST_FUZZ_CASES", cases),
        rng_seed: RngSeed::Fixed(setting("OUTLAST_FUZZ_SEED", 1)),
        failure_persistence: None,
        ..Config::default()
    })
}

fn smoke(name: &str, cases: u32, inputs: impl Strategy<Value = Vec<u8>>) {
    let (_, target) = TARGETS.iter().find(|(known, _)| *known == name).expect("a target has this name");
    let outcome = runner(cases).run(&inputs, |input| {
        target(&input);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{name}: {failure}"));
}

/// Stored texts with a few changed bytes, because random bytes hardly ever decode.
fn nearly(texts: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    edited(texts.iter().map(|text| text.as_bytes().to_vec()).collect())
}

/// The inputs that are named by hand in a corpus, with a few changed bytes.
fn nearly_seeds(name: &str) -> impl Strategy<Value = Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut paths: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("seed-")));
    paths.sort();
    edited(paths.iter().map(|path| std::fs::read(path).unwrap()).collect())
}

fn edited(texts: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let text = proptest::sample::select(texts);
    (text, vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 0..4)).prop_map(|(mut text, edits)| {
        for (at, byte, how) in edits {
            let at = at.index(text.len());
            match how {
                0 => text[at] = byte,
                1 => text.insert(at, byte),
                _ => text[at] ^= 1 << (byte % 8),
            }
        }
        text
    })
}

#[test]
fn connection_url() {
    smoke("connection_url", 3_000, nearly_seeds("connection_url"));
}

#[test]
fn http_request() {
    smoke("http_request", 300, nearly_seeds("http_request"));
}

#[test]
fn import_file() {
    smoke("import_file", 1_000, nearly_seeds("import_file"));
}

#[test]
fn replay_history() {
    smoke("replay_history", 3_000, nearly_seeds("replay_history"));
}

#[test]
fn decode_event() {
    smoke("decode_event", 5_000, nearly(EVENTS));
}

#[test]
fn decode_work_item() {
    smoke("decode_work_item", 5_000, nearly(ITEMS));
}

#[test]
fn list_filter_cursor() {
    smoke("list_filter_cursor", 1_000, vec(any::<u8>(), 0..64));
}

#[test]
fn migration_table() {
    smoke("migration_table", 2_000, vec(any::<u8>(), 0..64));
}

#[test]
fn row_corruption() {
    smoke("row_corruption", 300, vec(any::<u8>(), 4..48));
}

const EVENTS: &[&str] = &[
    r#"{"event_id":1,"source_event_id":null,"instance_id":"a","execution_id":1,"timestamp_ms":7,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Flow","version":"1.0.0","input":"in","parent_instance":"p","parent_id":2}"#,
    r#"{"event_id":3,"source_event_id":2,"instance_id":"a","execution_id":1,"timestamp_ms":7,"duroxide_version":"0.1.32","type":"ActivityCompleted","result":"\u00e9\n"}"#,
    r#"{"event_id":4,"source_event_id":2,"instance_id":"a","execution_id":1,"timestamp_ms":7,"duroxide_version":"0.1.32","type":"OrchestrationFailed","details":{"Application":{"kind":{"Cancelled":{"reason":"r"}},"message":"m","retryable":false}}}"#,
];

const ITEMS: &[&str] = &[
    r#"{"ActivityExecute":{"instance":"a","execution_id":1,"id":2,"name":"Work","input":"in","session_id":"s","tag":"t"}}"#,
    r#"{"StartOrchestration":{"instance":"a","orchestration":"Flow","input":"in","version":null,"parent_instance":null,"parent_id":null,"execution_id":1}}"#,
    r#"{"ContinueAsNew":{"instance":"a","orchestration":"Flow","input":"in","version":"1.0.0","carry_forward_events":[["q","d"]],"initial_custom_status":"s"}}"#,
];
