//! The root folder contains listed files only. Notes and results of runs do not belong into it.

use crate::tidy::repo::{Finding, Repo};
use crate::tidy::tables::PATH;

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let mut unlisted: Vec<&str> = repo.files.iter().filter_map(|file| file.path.split('/').next()).collect();
    unlisted.retain(|name| !repo.tables.root.iter().any(|listed| listed == name));
    unlisted.dedup();
    let message = format!("the root folder contains listed files only: move this file, or list it in {PATH}");
    unlisted
        .into_iter()
        .map(|name| Finding { path: name.to_string(), line: 1, message: message.clone() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unlisted_file_or_folder_is_reported_once() {
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
