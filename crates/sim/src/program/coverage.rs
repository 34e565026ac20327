//! Every public method of the context in the source of the engine is used by some step, or is in a list with the reason
//! why not.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Methods that no step uses.
const LEFT_OUT: &[(&str, &str)] = &[(
    "schedule_wait2",
    "it exists only under the feature replay-version-test, which stands for a newer contract",
)];

/// Files of the engine that contain methods of the context.
fn sources() -> Vec<PathBuf> {
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/src");
    let in_folder = |folder: &str| {
        let entries = fs::read_dir(engine.join(folder)).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    let mut all = [in_folder("op"), in_folder("combinator")].concat();
    all.push(engine.join("context.rs"));
    all
}

/// Names of public methods in blocks that begin with `impl OrchestrationContext`.
fn methods(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut inside = false;
    for line in source.lines() {
        match line {
            "impl OrchestrationContext {" => inside = true,
            "}" => inside = false,
            _ if inside => {
                let call =
                    line.strip_prefix("    pub fn ").or_else(|| line.strip_prefix("    pub async fn "));
                let name = call.and_then(|call| call.split(['(', '<']).next());
                found.extend(name.map(str::to_string));
            }
            _ => {}
        }
    }
    found
}

/// Names of all methods that the interpreter calls on a context.
fn used() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/program/interpret");
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let source = fs::read_to_string(entry.unwrap().path()).unwrap();
        for call in source.split("context.").skip(1).chain(source.split("context\n").skip(1)) {
            let call = call.trim_start().trim_start_matches('.');
            let name = call.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            found.insert(name.to_string());
        }
    }
    found
}

#[test]
fn every_context_method_is_used_by_a_step() {
    let mut all = BTreeSet::new();
    for path in sources() {
        all.extend(methods(&fs::read_to_string(&path).unwrap()));
    }
    assert!(all.len() > 50, "the engine has more operations than {}: {all:?}", all.len());
    let left_out: BTreeSet<String> = LEFT_OUT.iter().map(|(name, _)| name.to_string()).collect();
    let used = used();
    let unused: Vec<&String> = all.difference(&used).filter(|name| !left_out.contains(*name)).collect();
    assert!(unused.is_empty(), "no step uses {unused:?}");
    let stale: Vec<&String> =
        left_out.iter().filter(|name| used.contains(*name) || !all.contains(*name)).collect();
    assert!(stale.is_empty(), "{stale:?} need not be left out");
}

#[test]
fn public_methods_are_found_in_source() {
    let source = "impl Other {\n    pub fn no(&self) {}\n}\nimpl OrchestrationContext {\n    pub fn one<T>(&self) {}\n    \
                  fn private(&self) {}\n    pub async fn two(\n}\n";
    assert_eq!(methods(source), ["one", "two"].map(str::to_string).into());
}
