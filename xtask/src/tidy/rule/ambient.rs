//! Only the listed files use clocks, randomness, threads and tasks. Other code receives them as parameters.
//!
//! The shipped code can therefore run in virtual time. Clippy refuses some of these calls too, but an `allow` attribute
//! silences clippy: the table in this file lists all exceptions.

use crate::tidy::repo::{Finding, Repo};

/// The calls that are refused, and their replacements.
const REFUSED: &[(&str, &str)] = &[
    ("SystemTime::now", "take a Clock"),
    ("Instant::now", "take a Clock"),
    ("Uuid::new_v4", "take an Entropy"),
    ("thread_rng", "take an Entropy"),
    ("rand::rng", "take an Entropy"),
    ("getrandom::", "take an Entropy"),
    ("thread::spawn", "threads have one owner per crate"),
    ("thread::Builder", "threads have one owner per crate"),
    ("tokio::spawn", "tasks have one owner per crate"),
];

/// The exceptions: a file, or a folder with `/` at its end; the calls that it may use; and the reason.
const ALLOWED: &[(&str, &[&str], &str)] = &[
    ("crates/model/src/clock.rs", &["SystemTime::now"], "the implementation of the clock"),
    ("crates/provider/src/entropy.rs", &["getrandom::"], "the implementation of the entropy"),
    (
        "crates/conformance/src/",
        &["Instant::now", "tokio::spawn"],
        "the suite measures and races, with tokio's clock",
    ),
    ("crates/sqlite/src/threads.rs", &["thread::Builder"], "the owner of the threads"),
    (
        "crates/postgres/src/lanes.rs",
        &["tokio::spawn", "Instant::now"],
        "the owner of the lanes; pauses run by tokio's clock",
    ),
    (
        "crates/postgres/src/listener.rs",
        &["tokio::spawn", "Instant::now"],
        "the owner of the listener; pauses run by tokio's clock",
    ),
    (
        "crates/postgres/src/connect.rs",
        &["tokio::spawn"],
        "the owner of the connections: each has a task that speaks with the server",
    ),
    (
        "crates/postgres/src/resend.rs",
        &["tokio::spawn", "Instant::now"],
        "requests that are sent again wait beside the lanes, by tokio's clock",
    ),
    (
        "crates/postgres/src/",
        &["Instant::now"],
        "fetches wait by tokio's clock; leases use the server's clock",
    ),
    (
        "crates/cosmos/src/tasks.rs",
        &["tokio::spawn"],
        "the owner of the tasks: fetches, commits that are finished, the reconciler",
    ),
    (
        "crates/cosmos-rig/src/server.rs",
        &["thread::Builder"],
        "the owner of the thread that serves the emulator",
    ),
    (
        "crates/bench/",
        &["Instant::now", "SystemTime::now", "tokio::spawn", "thread::Builder"],
        "benchmarks measure real time under real load",
    ),
    (
        "crates/runtime/src/",
        &["Instant::now"],
        "leases and pauses run by tokio's clock, which a test can stop",
    ),
    ("crates/testing/src/world.rs", &["tokio::spawn"], "tasks for the messages of a test, at their times"),
    ("crates/sim/src/main.rs", &["Instant::now"], "`--minutes` is real time"),
    ("crates/chaos/src/", &["Instant::now"], "it kills real processes in real time, with tokio's clock"),
    ("tools/toolkit/src/stopwatch.rs", &["Instant::now"], "the tools measure real time with this type"),
];

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in repo.rust().filter(|(file, _)| is_source(&file.path)) {
        for (pattern, instead) in REFUSED.iter().filter(|(pattern, _)| !is_allowed(&file.path, pattern)) {
            let message = format!(
                "`{pattern}` is not allowed in this file: {instead}, or add an exception in {}",
                file!()
            );
            findings.extend(source.find(pattern).map(|at| file.finding(source.line(at), message.clone())));
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

fn is_allowed(path: &str, pattern: &str) -> bool {
    ALLOWED.iter().any(|(place, patterns, _)| {
        let inside = if place.ends_with('/') { path.starts_with(place) } else { path == *place };
        inside && patterns.contains(&pattern)
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

    #[test]
    fn every_exception_names_a_refused_call() {
        for (_, patterns, why) in ALLOWED {
            assert!(!why.is_empty());
            for pattern in *patterns {
                assert!(REFUSED.iter().any(|(refused, _)| refused == pattern), "{pattern}");
            }
        }
    }
}
