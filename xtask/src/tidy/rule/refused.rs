//! The rules that refuse texts: the rows of the table `refused` in xtask/tidy.toml.

use crate::tidy::repo::{File, Finding, Repo};
use crate::tidy::tables::{Read, Refused};

pub(in crate::tidy) fn check(repo: &Repo, rule: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for row in repo.tables.refused.iter().filter(|row| row.rule == rule) {
        for file in repo.files.iter().filter(|file| row.reads(&file.path)) {
            for text in row.texts.iter().filter(|text| !allows(repo, &file.path, text)) {
                let found = places(row.read, file, text).into_iter();
                let meant = found.filter(|at| !row.only_tests || file.is_test_at(*at));
                findings.extend(meant.map(|at| {
                    let line = file.text[..at].matches('\n').count() + 1;
                    file.finding(line, format!("`{text}`: {}", row.why))
                }));
            }
        }
    }
    findings
}

/// The offsets of a text in a file.
fn places(read: Read, file: &File, text: &str) -> Vec<usize> {
    match (read, &file.rust) {
        (Read::Code, Some(source)) => source.find(text).collect(),
        (Read::Code, None) => Vec::new(),
        (Read::Paths, _) => {
            let found = file.text.match_indices(text).map(|(at, _)| at);
            found.filter(|at| starts_path(&file.text[..*at])).collect()
        }
    }
}

/// Whether a path starts behind this text, so that the text is not the middle of a path.
fn starts_path(before: &str) -> bool {
    let continues = |char: char| char.is_alphanumeric() || "_-.~/})$".contains(char);
    before.ends_with("://") || !before.ends_with(continues)
}

impl Refused {
    fn reads(&self, path: &str) -> bool {
        let is_in = |place: &String| is_at(path, place);
        self.files.iter().any(is_in) && !self.except.iter().any(is_in)
    }
}

fn allows(repo: &Repo, path: &str, text: &String) -> bool {
    repo.tables.allowed.iter().any(|row| is_at(path, &row.place) && row.texts.contains(text))
}

/// Whether a path is at a place: a file, or a folder with `/` at its end. `*` is one folder, or the start of the path.
fn is_at(path: &str, place: &str) -> bool {
    match place.split_once('*') {
        Some(("", end)) => path.ends_with(end),
        Some((start, end)) => path
            .strip_prefix(start)
            .and_then(|rest| rest.find('/').map(|at| &rest[at..]))
            .is_some_and(|rest| rest.starts_with(end)),
        None => path == place || (place.ends_with('/') && path.starts_with(place)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule, a file, its text, and the refused lines.
    const CASES: &[(&str, &str, &str, &[usize])] = &[
        ("ambient", "crates/engine/src/a.rs", "fn f() {\nstd::time::SystemTime::now();\n}", &[2]),
        ("ambient", "crates/engine/src/a.rs", "tokio::time::Instant::now()\nInstant::now()", &[1, 2]),
        ("ambient", "crates/engine/src/a.rs", "Uuid::new_v4()\nrand::thread_rng()\nrand::rng()", &[1, 2, 3]),
        ("ambient", "crates/engine/src/a.rs", "getrandom::fill(b)\nstd::thread::spawn(f)", &[1, 2]),
        ("ambient", "crates/sqlite/src/commit.rs", "thread::Builder::new();\ntokio::spawn(f)", &[1, 2]),
        ("ambient", "crates/model/src/clock.rs", "SystemTime::now();\nInstant::now()", &[2]),
        ("ambient", "crates/conformance/src/race/mod.rs", "tokio::spawn(a)", &[]),
        ("ambient", "crates/sqlite/src/threads.rs", "thread::Builder::new()", &[]),
        ("ambient", "crates/bench/src/main.rs", "Instant::now()", &[]),
        ("ambient", "tools/mutants/src/main.rs", "Instant::now()", &[1]),
        ("ambient", "xtask/src/main.rs", "Instant::now()", &[1]),
        ("ambient", "crates/engine/src/a.rs", "// Instant::now()\n\"tokio::spawn\"; rand::rngs::A", &[]),
        ("ambient", "crates/engine/tests/it/main.rs", "Instant::now()", &[]),
        ("leftovers", "a.rs", "#[ignore = \"slow\"]\nfn a() { todo!() }", &[1, 2]),
        ("leftovers", "a.rs", "unimplemented!(\"x\");\ndbg!(1)", &[1, 2]),
        ("leftovers", "a.rs", "/// `todo!()`\nfn a() { f(\"dbg!(\"); #[ignored] my_todo!() }", &[]),
        ("machine-paths", "docs/a.md", "run\n`cd /work/main`", &[2]),
        ("machine-paths", "Cargo.toml", "path = \"/home/me/x\"", &[1]),
        ("machine-paths", ".ci/run", "cp a /tmp/b", &[1]),
        ("machine-paths", "README.md", "file:///root/x", &[1]),
        ("machine-paths", "README.md", "https://a.org/home/x target/tmp/ $HOME/work/ ${X}/tmp/", &[]),
        ("machine-paths", "crates/a/src/a.rs", "// /tmp/", &[]),
        ("sleep", "crates/a/tests/it/main.rs", "fn f() {\n  tokio::time::sleep(d).await;\n}", &[2]),
        ("sleep", "crates/a/src/a.rs", "fn a() { sleep(x) }\n#[cfg(test)]\nmod tests { sleep(d) }", &[3]),
        ("sleep", "crates/chaos/tests/it/main.rs", "sleep(d)", &[]),
        ("sleep", "crates/conformance/tests/it/main.rs", "sleep(d)", &[]),
        ("sleep", "crates/a/tests/it/main.rs", "no_sleep(d); // sleep(d)", &[]),
        ("lints", "crates/chaos/src/power/disk.rs", "#![allow(unsafe_code)]", &[1]),
        ("lints", "crates/chaos/src/power/vfs.rs", "#![allow(unsafe_code)]", &[]),
    ];

    #[test]
    fn texts_are_refused_in_the_files_of_their_rows() {
        for (rule, path, text, lines) in CASES {
            let found = check(&Repo::of(&[(path, text)]), rule);
            let found: Vec<usize> = found.into_iter().map(|finding| finding.line).collect();
            assert_eq!(found, *lines, "{rule} {path}: {text}");
        }
    }
}
