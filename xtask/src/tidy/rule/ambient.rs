//! Only the listed files use clocks, randomness, threads and tasks. Other code receives them as parameters.
//!
//! The shipped code can therefore run in virtual time. Clippy refuses some of these calls too, but an `allow` attribute
//! silences clippy: xtask/tidy.toml lists all exceptions.

use crate::tidy::repo::{Finding, Repo};
use crate::tidy::tables::{AllowedCalls, PATH, Tables};

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in repo.rust().filter(|(file, _)| is_source(&file.path)) {
        let refused = repo.tables.refused_calls.iter();
        for (call, instead) in refused.filter(|(call, _)| !is_allowed(&repo.tables, &file.path, call)) {
            let message =
                format!("`{call}` is not allowed in this file: {instead}, or add an exception in {PATH}");
            findings.extend(source.find(call).map(|at| file.finding(source.line(at), message.clone())));
        }
    }
    findings
}

/// The sources of the packages. Tests, benchmarks and examples may use real time and randomness.
fn is_source(path: &str) -> bool {
    let mut parts = path.split('/');
    match parts.next() {
        Some("crates" | "tools") => parts.nth(1) == Some("src"),
        Some("xtask") => true,
        _ => false,
    }
}

fn is_allowed(tables: &Tables, path: &str, call: &String) -> bool {
    tables.allowed_calls.iter().any(|AllowedCalls { place, calls, .. }| {
        let is_inside = if place.ends_with('/') { path.starts_with(place) } else { path == place };
        is_inside && calls.contains(call)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of the file that are refused.
    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Repo::of(&[(path, text)])).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn each_listed_call_is_refused() {
        for call in [
            "std::time::SystemTime::now()",
            "tokio::time::Instant::now()",
            "Instant::now()",
            "Uuid::new_v4()",
        ] {
            assert_eq!(lines("crates/engine/src/turn.rs", &format!("fn f() {{\n{call};\n}}")), [2], "{call}");
        }
        for call in [
            "rand::thread_rng()",
            "rand::rng()",
            "getrandom::fill(b)",
            "std::thread::spawn(f)",
            "tokio::spawn(f)",
        ] {
            assert_eq!(lines("crates/engine/src/turn.rs", call), [1], "{call}");
        }
        assert_eq!(lines("crates/sqlite/src/commit.rs", "thread::Builder::new()"), [1]);
    }

    #[test]
    fn the_listed_files_are_allowed() {
        assert_eq!(lines("crates/model/src/clock.rs", "SystemTime::now()"), [0; 0]);
        assert_eq!(lines("crates/model/src/clock.rs", "Instant::now()"), [1]);
        assert_eq!(lines("crates/conformance/src/race/mod.rs", "tokio::spawn(a)"), [0; 0]);
        assert_eq!(lines("crates/sqlite/src/threads.rs", "thread::Builder::new()"), [0; 0]);
        assert_eq!(lines("crates/bench/src/main.rs", "Instant::now()"), [0; 0]);
        assert_eq!(lines("tools/mutants/src/main.rs", "Instant::now()"), [1]);
    }

    #[test]
    fn comments_literals_and_other_folders_are_not_checked() {
        assert_eq!(
            lines("crates/engine/src/a.rs", "// Instant::now()\nlet a = \"tokio::spawn\"; rand::rngs::Small"),
            [0; 0]
        );
        assert_eq!(lines("crates/engine/tests/it/main.rs", "Instant::now()"), [0; 0]);
    }
}
