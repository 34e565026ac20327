//! Replays every recorded input of `cargo xtask fuzz`, including all that once found a defect.

use outlast_fuzz::TARGETS;
use std::path::Path;

/// Replays the corpus of a target; returns the number of inputs.
fn replay(name: &str) -> usize {
    let (_, target) = TARGETS.iter().find(|(known, _)| *known == name).expect("a target has this name");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        // Printed only if the test fails; then it is the last line.
        println!("{}", path.display());
        target(&std::fs::read(&path).unwrap());
        count += 1;
    }
    count
}

#[test]
fn decode_event() {
    assert!(replay("decode_event") > 0);
}

#[test]
fn decode_work_item() {
    assert!(replay("decode_work_item") > 0);
}

#[test]
fn list_filter_cursor() {
    assert!(replay("list_filter_cursor") > 0);
}

#[test]
fn migration_table() {
    assert!(replay("migration_table") > 0);
}

#[test]
fn row_corruption() {
    assert!(replay("row_corruption") > 0);
}

#[test]
fn connection_url() {
    assert!(replay("connection_url") > 0);
}

#[test]
fn http_request() {
    assert!(replay("http_request") > 0);
}

#[test]
fn import_file() {
    assert!(replay("import_file") > 0);
}

#[test]
fn replay_history() {
    assert!(replay("replay_history") > 0);
}

#[test]
fn every_corpus_belongs_to_a_target() {
    let folders = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")).unwrap();
    let mut folders: Vec<String> =
        folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    folders.sort();
    assert_eq!(folders, TARGETS.map(|(name, _)| name));
}
