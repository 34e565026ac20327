//! The demo without kills.

use crate::support::{demo, ended, ledger_lines, outlast, run};
use std::path::Path;

const TINY: [&str; 4] = ["--orders", "3", "--pace", "0"];

fn rewrite_ledger(dir: &Path, change: impl FnOnce(&mut Vec<String>)) {
    let mut lines = ledger_lines(dir);
    change(&mut lines);
    std::fs::write(dir.join("ledger.jsonl"), lines.join("\n") + "\n").unwrap();
}

#[test]
fn command_of_the_front_page_runs_the_demo() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let readme = read("README.md");
    let commands = readme.split("`cargo run ").skip(1).map(|rest| rest.split('`').next().unwrap());
    let demos: Vec<&str> = commands.filter(|command| command.contains("demo")).collect();
    assert!(!demos.is_empty());
    // Without a package, cargo runs the only program of the default members.
    let manifest = |path: &str| read(path).parse::<toml::Table>().unwrap();
    let members = manifest("Cargo.toml")["workspace"]["default-members"].as_array().unwrap().clone();
    assert_eq!((members.len(), members[0].as_str()), (1, Some("crates/cli")));
    let programs = manifest("crates/cli/Cargo.toml")["bin"].as_array().unwrap().clone();
    assert_eq!((programs.len(), programs[0]["name"].as_str()), (1, Some("outlast")));
    assert!(!root.join("crates/cli/src/bin").exists(), "no other program");
    for demo in demos {
        let args = demo.strip_prefix("--release -- ").unwrap().split(' ');
        let help = run(args.chain(["--help"])).fine();
        let page = "http://127.0.0.1:7411/demo";
        assert!(help.starts_with("Run a shop") && help.contains(page) && readme.contains(page), "{help}");
    }
}

#[test]
fn a_run_prints_its_proof_and_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let out = run(demo(dir.path(), &TINY)).fine();
    let store = dir.path().join("shop.db").display().to_string();
    let ledger = dir.path().join("ledger.jsonl").display().to_string();
    for part in ["Batch 1: 3 orders", "3 placed, 3 ended", "It holds", &store, &ledger] {
        assert!(out.contains(part), "{part} in {out}");
    }
    assert!(!out.contains('\u{1b}'), "not a terminal: {out:?}");
}

#[test]
fn after_a_finished_run_a_new_batch_starts_or_fresh_empties_the_files() {
    let dir = tempfile::tempdir().unwrap();
    run(demo(dir.path(), &TINY)).fine();
    let next = run(demo(dir.path(), &TINY)).fine();
    for part in ["The last run is finished: batch 1 of 3 orders, proven", "Batch 2: 3 orders", "It holds"] {
        assert!(next.contains(part), "{part} in {next}");
    }
    let fresh = run(demo(dir.path(), &["--orders", "2", "--pace", "0", "--fresh"])).fine();
    assert!(fresh.contains("Batch 1: 2 orders") && !fresh.contains("last run"), "{fresh}");
}

#[test]
fn a_failed_proof_exits_with_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    run(demo(dir.path(), &["--orders", "6", "--pace", "0"])).fine();
    rewrite_ledger(dir.path(), |lines| {
        lines.retain(|line| !line.contains("\"proven\""));
        let charged = lines.iter().find(|line| line.contains("\"charged\"")).unwrap();
        let again = charged.replace("\"key\":\"", "\"key\":\"again-");
        lines.push(again);
    });
    let said = run(demo(dir.path(), &TINY));
    assert_eq!((said.code, said.err.as_str()), (Some(1), ""), "everything is in the proof");
    for part in ["all 6 orders of the last run have ended", "IT DOES NOT HOLD", "charged 2 times"] {
        assert!(said.out.contains(part), "{part} in {}", said.out);
    }
}

#[test]
fn an_order_that_the_store_lost_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    run(demo(dir.path(), &TINY)).fine();
    rewrite_ledger(dir.path(), |lines| lines.retain(|line| !line.contains("\"proven\"")));
    std::fs::remove_file(dir.path().join("shop.db")).unwrap();
    let error = run(demo(dir.path(), &TINY)).failed();
    assert!(error.contains("tells of 3 orders, but the store") && error.contains("--fresh"), "{error}");
    run(demo(dir.path(), &["--orders", "1", "--pace", "0", "--fresh"])).fine();
}

#[test]
fn files_that_the_demo_did_not_create_are_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = dir.path().join("ledger.jsonl");
    std::fs::write(&ledger, "my own").unwrap();
    let error = run(demo(dir.path(), &["--fresh"])).failed();
    assert!(error.contains("not a ledger of the demo"), "{error}");
    assert_eq!(std::fs::read_to_string(&ledger).unwrap(), "my own");
    std::fs::remove_file(&ledger).unwrap();

    let store = dir.path().join("shop.db");
    std::fs::write(&store, "my own").unwrap();
    let error = run(demo(dir.path(), &["--fresh"])).failed();
    assert!(error.contains("without its ledger"), "{error}");
    assert_eq!(std::fs::read_to_string(&store).unwrap(), "my own");
    assert!(!ledger.exists());
}

#[test]
fn output_to_a_pipe_has_no_colours() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = outlast(demo(dir.path(), &TINY));
    command.env("CLICOLOR_FORCE", "1").env("TERM", "xterm-256color");
    assert!(!ended(&mut command).fine().contains('\u{1b}'));
}
