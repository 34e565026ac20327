//! Clocks, randomness and background work have owners: everybody else is handed them.
//!
//! That is what lets the shipped code run under virtual time. Clippy refuses some of these as well, but an `allow`
//! on the spot silences it; this table is the one place where an exception is granted.

use crate::tidy::repo::{Finding, Repo};

/// What is watched for, and what to do instead.
const WATCHED: &[(&str, &str)] = &[
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

/// An exception.
struct Allowed {
    /// A file, or a folder with `/` at its end.
    path: &'static str,
    patterns: &'static [&'static str],
    #[allow(dead_code, reason = "read by people: an exception without a reason is not granted")]
    why: &'static str,
}

const ALLOWED: &[Allowed] = &[
    Allowed { path: "crates/model/src/clock.rs", patterns: &["SystemTime::now"], why: "the clock itself" },
    Allowed { path: "crates/provider/src/entropy.rs", patterns: &["getrandom::"], why: "the entropy itself" },
    Allowed {
        path: "crates/conformance/src/",
        patterns: &["Instant::now", "tokio::spawn"],
        why: "the suite measures and races, with tokio's clock",
    },
    Allowed {
        path: "crates/sqlite/src/threads.rs",
        patterns: &["thread::Builder"],
        why: "the owner of the threads",
    },
    Allowed {
        path: "crates/postgres/src/lanes.rs",
        patterns: &["tokio::spawn", "Instant::now"],
        why: "the owner of the lanes; pauses run by tokio's clock",
    },
    Allowed {
        path: "crates/postgres/src/listener.rs",
        patterns: &["tokio::spawn", "Instant::now"],
        why: "the owner of the listener; pauses run by tokio's clock",
    },
    Allowed {
        path: "crates/postgres/src/connect.rs",
        patterns: &["tokio::spawn"],
        why: "the owner of the connections: each has a task that speaks with the server",
    },
    Allowed {
        path: "crates/postgres/src/resend.rs",
        patterns: &["tokio::spawn", "Instant::now"],
        why: "requests that are sent again wait beside the lanes, by tokio's clock",
    },
    Allowed {
        path: "crates/postgres/src/",
        patterns: &["Instant::now"],
        why: "how long a fetch waits is a matter of tokio's clock; leases run by the server's",
    },
    Allowed {
        path: "crates/bench/",
        patterns: &["Instant::now", "SystemTime::now", "tokio::spawn", "thread::Builder"],
        why: "benchmarks measure real time under real load",
    },
    Allowed {
        path: "crates/runtime/src/",
        patterns: &["Instant::now"],
        why: "leases and pauses run by tokio's clock, which a test can stop",
    },
    Allowed {
        path: "crates/sim/src/main.rs",
        patterns: &["Instant::now"],
        why: "how long to go on is a matter of real time",
    },
    Allowed {
        path: "crates/chaos/src/",
        patterns: &["Instant::now"],
        why: "it hurts real processes in real time, by tokio's clock",
    },
    Allowed { path: "xtask/", patterns: &["Instant::now"], why: "the summary reports real seconds" },
];

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in repo.rust().filter(|(file, _)| is_source(&file.path)) {
        for (pattern, instead) in WATCHED.iter().filter(|(pattern, _)| !is_allowed(&file.path, pattern)) {
            let message =
                format!("`{pattern}` is not for this file: {instead}, or add an exception in {}", file!());
            findings.extend(source.find(pattern).map(|at| file.finding(source.line(at), message.clone())));
        }
    }
    findings
}

/// The sources of our packages. Tests, benches and examples of a package may look at the real world.
fn is_source(path: &str) -> bool {
    let mut parts = path.split('/');
    match parts.next() {
        Some("crates") => parts.nth(1) == Some("src"),
        Some("xtask") => true,
        _ => false,
    }
}

fn is_allowed(path: &str, pattern: &str) -> bool {
    ALLOWED.iter().any(|allowed| {
        let inside =
            if allowed.path.ends_with('/') { path.starts_with(allowed.path) } else { path == allowed.path };
        inside && allowed.patterns.contains(&pattern)
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
    fn each_watched_call_is_refused() {
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
    fn the_owners_are_allowed() {
        assert_eq!(lines("crates/model/src/clock.rs", "SystemTime::now()"), [0; 0]);
        assert_eq!(lines("crates/model/src/clock.rs", "Instant::now()"), [1]);
        assert_eq!(lines("crates/conformance/src/race/mod.rs", "tokio::spawn(a)"), [0; 0]);
        assert_eq!(lines("crates/sqlite/src/threads.rs", "thread::Builder::new()"), [0; 0]);
        assert_eq!(lines("crates/bench/src/main.rs", "Instant::now()"), [0; 0]);
    }

    #[test]
    fn comments_text_and_other_folders_are_not_read() {
        assert_eq!(
            lines("crates/engine/src/a.rs", "// Instant::now()\nlet a = \"tokio::spawn\"; rand::rngs::Small"),
            [0; 0]
        );
        assert_eq!(lines("crates/engine/tests/it/main.rs", "Instant::now()"), [0; 0]);
    }

    #[test]
    fn every_exception_is_about_something_watched() {
        for allowed in ALLOWED {
            assert!(!allowed.why.is_empty());
            for pattern in allowed.patterns {
                assert!(WATCHED.iter().any(|(watched, _)| watched == pattern), "{pattern}");
            }
        }
    }
}
