//! `cargo xtask tidy`: what is not checked decays. A new rule is a file in `rule/` and a row in [`RULES`].

mod lexer;
mod manifest;
mod markdown;
mod outliers;
mod repo;
mod rule;
mod source;
mod test_code;

use std::process::ExitCode;

use self::repo::{Finding, Repo};
use crate::command::listing;

/// A rule of this repository.
struct Rule {
    name: &'static str,
    about: &'static str,
    check: fn(&Repo) -> Vec<Finding>,
}

const RULES: &[Rule] = &[
    Rule {
        name: "edges",
        about: "crates depend only on the crates they may know",
        check: rule::edges::check,
    },
    Rule {
        name: "forbidden",
        about: "what may not know tokio, or only parts of it",
        check: rule::forbidden::check,
    },
    Rule { name: "ambient", about: "clocks, randomness and tasks have owners", check: rule::ambient::check },
    Rule { name: "sql", about: "SQL lives in .sql files", check: rule::sql::check },
    Rule { name: "links", about: "links in Markdown lead somewhere", check: rule::links::check },
    Rule { name: "counts", about: "counts in documents are those of the source", check: rule::counts::check },
    Rule { name: "root", about: "the root holds what a visitor needs", check: rule::root::check },
    Rule { name: "sleep", about: "tests wait for events, not for time", check: rule::sleep::check },
    Rule { name: "lints", about: "every package inherits the lints", check: rule::lints::check },
    Rule { name: "dependencies", about: "every dependency has its reason", check: rule::dependencies::check },
    Rule {
        name: "machine-paths",
        about: "no paths of somebody's machine",
        check: rule::machine_paths::check,
    },
    Rule { name: "scoreboard", about: "the scoreboard shows its figures", check: rule::scoreboard::check },
    Rule { name: "pages", about: "code and tables in pages are as in the source", check: rule::pages::check },
    Rule { name: "skills", about: "skills name only what exists", check: rule::skills::check },
    Rule { name: "leftovers", about: "no ignored tests, no unfinished code", check: rule::leftovers::check },
];

pub(crate) fn details() -> String {
    format!("rules:\n{}", listing(RULES.iter().map(|rule| (rule.name, rule.about))))
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode, String> {
    if let Some(arg) = args.first() {
        return Err(format!("tidy: unknown argument `{arg}`\n\n{}", details()));
    }
    Ok(if check()? == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints every finding and returns how many there are.
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
