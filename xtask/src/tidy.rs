//! `cargo xtask tidy`: checks the rules of this repository. A new rule is a row in [`RULES`], and a
//! file in `rule/` or rows in xtask/tidy.toml.

mod markdown;
mod outliers;
mod repo;
mod rule;
mod tables;

use std::process::ExitCode;

use self::repo::{Finding, Repo};
use self::rule::{
    architecture, blocks, counts, dependencies, edges, links, lints, one_call, pages, publish, refused, root,
    scores, skills, sql,
};

/// A rule of this repository.
struct Rule {
    name: &'static str,
    about: &'static str,
    check: fn(&Repo) -> Vec<Finding>,
}

impl Rule {
    const fn new(name: &'static str, about: &'static str, check: fn(&Repo) -> Vec<Finding>) -> Self {
        Self { name, about, check }
    }
}

/// For a rule that consists of rows in xtask/tidy.toml.
fn rows_only(_: &Repo) -> Vec<Finding> {
    Vec::new()
}

const RULES: &[Rule] = &[
    Rule::new("edges", "packages depend only on the packages that the table allows", edges::check),
    Rule::new("forbidden", "packages without tokio, or with parts of tokio only", rows_only),
    Rule::new("test-util", "production builds never have tokio's test-util", edges::test_util),
    Rule::new("ambient", "clocks, randomness and tasks are used in listed files only", rows_only),
    Rule::new("sql", "SQL is in .sql files", sql::check),
    Rule::new(
        "architecture",
        "ARCHITECTURE.md is short, pictures draw all dependencies",
        architecture::check,
    ),
    Rule::new("one-call", "the page about one call names functions that exist", one_call::check),
    Rule::new("links", "links in Markdown have targets", links::check),
    Rule::new("counts", "counts in documents agree with the source", counts::check),
    Rule::new("root", "the root folder contains listed files only", root::check),
    Rule::new("sleep", "tests wait for events and do not sleep", rows_only),
    Rule::new("lints", "every package inherits the lints", lints::check),
    Rule::new("dependencies", "docs/dependencies.md has a reason of every dependency", dependencies::check),
    Rule::new("machine-paths", "no paths of one machine", rows_only),
    Rule::new("pages", "code, tables and figures in pages agree with their sources", pages::check),
    Rule::new("scores", "README quotes the scoreboard by name, and only of unchanged code", scores::check),
    Rule::new("blocks", "code blocks parse, and commands in them exist", blocks::check),
    Rule::new("skills", "names in skills exist", skills::check),
    Rule::new("publish", "published manifests are complete, the toolchain is the stated one", publish::check),
    Rule::new("leftovers", "no ignored tests and no unfinished code", rows_only),
];

pub(crate) fn rule_list() -> String {
    crate::listed("Rules", RULES.iter().map(|rule| (rule.name, rule.about)))
}

pub(crate) fn run() -> Result<ExitCode, String> {
    Ok(if check()? == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints every finding and returns their number.
pub(crate) fn check() -> Result<usize, String> {
    let repo = Repo::load()?;
    for note in outliers::notes(&repo) {
        println!("note: {note}");
    }
    let mut count = 0;
    for rule in RULES {
        let rows = refused::check(&repo, rule.name).into_iter().chain(edges::refused(&repo, rule.name));
        for Finding { path, line, message } in rows.chain((rule.check)(&repo)) {
            println!("{path}:{line}: {}: {message}", rule.name);
            count += 1;
        }
    }
    println!("tidy: {count} finding(s) in {} files", repo.files.len());
    Ok(count)
}
