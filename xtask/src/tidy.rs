//! `cargo xtask tidy`: checks the rules of this repository. A new rule is a file in `rule/` and a row in [`RULES`].

mod manifest;
mod markdown;
mod outliers;
mod repo;
mod rule;
mod source;
mod tables;

use std::fmt::Write as _;
use std::process::ExitCode;

use self::repo::{Finding, Repo};

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

const RULES: &[Rule] = &[
    Rule::new("edges", "packages depend only on the packages that the table allows", rule::edges::check),
    Rule::new("forbidden", "packages without tokio, or with parts of tokio only", rule::forbidden::check),
    Rule::new("test-util", "production builds never have tokio's test-util", rule::test_util::check),
    Rule::new("ambient", "clocks, randomness and tasks are used in listed files only", rule::ambient::check),
    Rule::new("sql", "SQL is in .sql files", rule::sql::check),
    Rule::new(
        "architecture",
        "ARCHITECTURE.md is short, and pictures draw the dependencies of the crates",
        rule::architecture::check,
    ),
    Rule::new(
        "one-call",
        "the page about the way of one call names functions that exist",
        rule::one_call::check,
    ),
    Rule::new("links", "links in Markdown have targets", rule::links::check),
    Rule::new("counts", "counts in documents agree with the source", rule::counts::check),
    Rule::new("root", "the root folder contains listed files only", rule::root::check),
    Rule::new("sleep", "tests wait for events and do not sleep", rule::sleep::check),
    Rule::new("lints", "every package inherits the lints", rule::lints::check),
    Rule::new(
        "dependencies",
        "every dependency has a reason in docs/dependencies.md",
        rule::dependencies::check,
    ),
    Rule::new("machine-paths", "no paths of one machine", rule::machine_paths::check),
    Rule::new("scoreboard", "docs/reliability.md shows the recorded figures", rule::scoreboard::check),
    Rule::new("pages", "code and tables in pages agree with the source", rule::pages::check),
    Rule::new("skills", "names in skills exist", rule::skills::check),
    Rule::new("leftovers", "no ignored tests and no unfinished code", rule::leftovers::check),
];

pub(crate) fn rule_list() -> String {
    RULES.iter().fold("Rules:\n".to_string(), |mut text, rule| {
        let _ = writeln!(text, "  {:<16} {}", rule.name, rule.about);
        text
    })
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
        for Finding { path, line, message } in (rule.check)(&repo) {
            println!("{path}:{line}: {}: {message}", rule.name);
            count += 1;
        }
    }
    println!("tidy: {count} finding(s) in {} files", repo.files.len());
    Ok(count)
}
