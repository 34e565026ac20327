//! Absolute paths of one machine do not exist on other machines.

use crate::tidy::repo::{File, Finding, Repo};

const FOLDERS: &[&str] = &["/root/", "/work/", "/home/", "/tmp/"];

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repo.files.iter().filter(|file| is_read(file)) {
        for (index, line) in file.text.lines().enumerate() {
            let found = FOLDERS.iter().filter(|folder| names(line, folder));
            findings.extend(
                found.map(|folder| file.finding(index + 1, format!("`{folder}` is a path of one machine"))),
            );
        }
    }
    findings
}

/// Documents, manifests and scripts. Rust files are not checked because tests contain such paths.
fn is_read(file: &File) -> bool {
    file.path.ends_with(".md") || file.path.ends_with(".toml") || file.path.starts_with(".ci/")
}

/// Whether the line has the folder at the start of a path, not in the middle of one.
fn names(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = &line[..at];
        let continues = |char: char| char.is_alphanumeric() || "_-.~/})$".contains(char);
        before.ends_with("://") || !before.ends_with(continues)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Repo::of(&[(path, text)])).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn paths_of_a_machine_are_refused() {
        assert_eq!(lines("docs/a.md", "run\n`cd /work/main`"), [2]);
        assert_eq!(lines("Cargo.toml", "path = \"/home/me/x\""), [1]);
        assert_eq!(lines(".ci/run", "cp a /tmp/b"), [1]);
        assert_eq!(lines("README.md", "file:///root/x"), [1]);
    }

    #[test]
    fn a_folder_name_inside_of_a_path_is_accepted() {
        assert_eq!(lines("README.md", "https://a.org/home/x target/tmp/ $HOME/work/ ${X}/tmp/"), [0; 0]);
        assert_eq!(lines("crates/a/src/a.rs", "// /tmp/"), [0; 0]);
    }
}
