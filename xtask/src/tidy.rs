//! `cargo xtask tidy`: checks the rules of this repository. A new rule is a file in `rule/` and a row in [`RULES`].

mod lexer;
mod manifest;
mod markdown;
mod outliers;
mod repo;
mod rule;
mod source;
mod test_code;

use std::fmt::Write as _;
use std::process::ExitCode;

use self::repo::{Finding, Repo};

/// A rule of this repository.
struct Rule {
    name: &'static str,
    about: &'static str,
    check: fn(&Repo) -> Vec<Finding>,
}

const RULES: &[Rule] = &[
    Rule {
        name: "edges",
        about: "packages depend only on the packages that the table allows",
        check: rule::edges::check,
    },
    Rule {
        name: "forbidden",
        about: "packages without tokio, or with parts of tokio only",
        check: rule::forbidden::check,
    },
    Rule {
        name: "ambient",
        about: "clocks, randomness and tasks are used in listed files only",
        check: rule::ambient::check,
    },
    Rule { name: "sql", about: "SQL is in .sql files", check: rule::sql::check },
    Rule {
        name: "architecture",
        about: "ARCHITECTURE.md is short, and pictures draw the dependencies of the crates",
        check: rule::architecture::check,
    },
    Rule {
        name: "one-call",
        about: "the page about the way of one call names functions that exist",
        check: rule::one_call::check,
    },
    Rule { name: "links", about: "links in Markdown have targets", check: rule::links::check },
    Rule { name: "counts", about: "counts in documents agree with the source", check: rule::counts::check },
    Rule { name: "root", about: "the root folder contains listed files only", check: rule::root::check },
    Rule { name: "sleep", about: "tests wait for events and do not sleep", check: rule::sleep::check },
    Rule { name: "lints", about: "every package inherits the lints", check: rule::lints::check },
    Rule {
        name: "dependencies",
        about: "every dependency has a reason in docs/dependencies.md",
        check: rule::dependencies::check,
    },
    Rule { name: "machine-paths", about: "no paths of one machine", check: rule::machine_paths::check },
    Rule {
        name: "scoreboard",
        about: "docs/reliability.md shows the recorded figures",
        check: rule::scoreboard::check,
    },
    Rule {
        name: "pages",
        about: "code and tables in pages agree with the source",
        check: rule::pages::check,
    },
    Rule { name: "skills", about: "names in skills exist", check: rule::skills::check },
    Rule {
        name: "leftovers",
        about: "no ignored tests and no unfinished code",
        check: rule::leftovers::check,
    },
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
