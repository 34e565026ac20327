//! The root holds what a visitor needs. Progress notes and result dumps live elsewhere, or nowhere.

use crate::tidy::repo::{Finding, Repo};

const ALLOWED: &[&str] = &[
    ".cargo",
    ".ci",
    ".github",
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "SECURITY.md",
    "bench",
    "clippy.toml",
    "crates",
    "deny.toml",
    "docs",
    "examples",
    "fuzz",
    "rust-toolchain.toml",
    "rustfmt.toml",
    "skills",
    "testdata",
    "xtask",
];

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let mut strangers: Vec<&str> = repo.files.iter().filter_map(|file| file.path.split('/').next()).collect();
    strangers.retain(|name| !ALLOWED.contains(name));
    strangers.dedup();
    let message = format!("the root is for what a visitor needs: move it, or allow it in {}", file!());
    strangers
        .into_iter()
        .map(|name| Finding { path: name.to_string(), line: 1, message: message.clone() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_refused_once() {
        let repo = Repo::of(&[
            ("README.md", ""),
            ("NOTES.md", ""),
            ("crates/a.rs", ""),
            ("out/a", ""),
            ("out/b", ""),
        ]);
        let found: Vec<String> = check(&repo).into_iter().map(|finding| finding.path).collect();
        assert_eq!(found, ["NOTES.md", "out"]);
    }
}
