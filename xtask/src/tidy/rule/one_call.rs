//! The page about the way of one call names files and functions that exist, and a call enters each file once.

use crate::metadata::source::find_words;
use crate::tidy::repo::{File, Finding, Repo};

const PAGE: &str = "docs/internals/one-call.md";
/// A second entry that the page explains has a path in bold.
const BOLD: &str = "**";

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let Some(page) = repo.file(PAGE) else { return Vec::new() };
    let mut findings = Vec::new();
    // The files that each column of the table has entered.
    let mut entered: Vec<Vec<String>> = Vec::new();
    for (index, line) in page.text.lines().enumerate() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if cells.get(1).is_none_or(|number| number.parse::<u32>().is_err()) {
            entered.clear();
            continue;
        }
        entered.resize(cells.len(), Vec::new());
        for (cell, files) in cells.iter().zip(&mut entered).skip(2) {
            let Some((path, names)) = entry(cell) else { continue };
            findings.extend(missing(repo, page, index + 1, &path, &names));
            if files.contains(&path) && !cell.starts_with(BOLD) {
                findings.push(page.finding(index + 1, format!("the call enters {path} a second time")));
            }
            files.push(path);
        }
    }
    findings
}

/// The file of a cell, relative to the root, and the functions and types that it names.
fn entry(cell: &str) -> Option<(String, Vec<&str>)> {
    let cell = cell.trim_start_matches(BOLD);
    let (file, names) = cell.split_once(".rs")?;
    let (package, file) = file.split_once('/')?;
    let package = if package == "kit" { "provider-kit" } else { package };
    let names = names.split('`').skip(1).step_by(2).map(|name| name.rsplit(':').next().unwrap_or(name));
    Some((format!("crates/{package}/src/{file}.rs"), names.collect()))
}

/// A file that does not exist, and names that it does not define.
fn missing(repo: &Repo, page: &File, line: usize, path: &str, names: &[&str]) -> Vec<Finding> {
    let Some(file) = repo.file(path) else {
        return vec![page.finding(line, format!("{path} does not exist"))];
    };
    let is_defined = |name: &&&str| {
        let mut definitions =
            ["fn", "struct", "enum", "impl", "let"].map(|keyword| format!("{keyword} {name}")).into_iter();
        definitions.any(|definition| find_words(&file.text, &definition).next().is_some())
    };
    let undefined = names.iter().filter(|name| !is_defined(name));
    undefined.map(|name| page.finding(line, format!("{path} does not define `{name}`"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(table: &str) -> Vec<String> {
        let files = [
            (PAGE, table),
            ("crates/sqlite/src/commit.rs", "pub(crate) fn commit<T>(t: T) {}\nstruct Committed;"),
            ("crates/provider-kit/src/plan.rs", "fn of() {}\nfn official() {}"),
        ];
        check(&Repo::of(&files)).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn files_and_functions_that_exist_are_accepted() {
        let table = "| 1 | sqlite/commit.rs `commit`, `Committed` | kit/plan.rs `CommitPlan::of` |\n\
                     | 2 | kit/plan.rs `official` | **kit/plan.rs** `of` |\n\n\
                     | 1 | sqlite/commit.rs `commit` | |";
        assert_eq!(findings(table), Vec::<String>::new());
    }

    #[test]
    fn a_second_entry_and_unknown_files_and_functions_are_found() {
        let table = "| 1 | sqlite/commit.rs `com` | kit/plan.rs `of` |\n\
                     | 2 | sqlite/gone.rs `x` | kit/plan.rs `of` |";
        assert_eq!(
            findings(table),
            [
                "crates/sqlite/src/commit.rs does not define `com`",
                "crates/sqlite/src/gone.rs does not exist",
                "the call enters crates/provider-kit/src/plan.rs a second time",
            ]
        );
    }
}
