//! `cargo xtask test`: runs the suites and prints one summary.
//!
//! In a run of all suites, processes with low priority use the processors while the suites of this process wait. One of
//! them runs the suites that build in a target folder of their own, from the start. The other runs the suites that share
//! the target folder with the first suites, after these.

mod second_process;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use outlast_toolkit::{Stopwatch, files};

use self::second_process::SecondProcess;
use crate::suite::report::{Line, Report};
use crate::suite::{Group, SUITES, Suite, Tally, run_quick};

#[derive(clap::Args)]
#[command(after_help = suite_list(SUITES))]
pub(crate) struct Args {
    /// Runs these suites only, one after the other
    #[arg(long, value_name = "SUITE,..", value_delimiter = ',', value_parser = suite_names(), hide_possible_values = true)]
    only: Vec<String>,
    /// Runs a check between two edits: formatting, tidy, clippy, and the fast tests of the packages that have changed
    #[arg(long, conflicts_with = "only")]
    quick: bool,
    /// Prints the suites
    #[arg(long)]
    list: bool,
    /// Writes the results to this file instead of a summary
    #[arg(long, value_name = "FILE", hide = true)]
    results: Option<PathBuf>,
}

fn suite_names() -> PossibleValuesParser {
    PossibleValuesParser::new(SUITES.iter().map(|suite| suite.name))
}

fn suite_list<'a>(suites: impl IntoIterator<Item = &'a Suite>) -> String {
    let note = |suite: &Suite| if suite.group == Group::OnRequest { " (only when it is named)" } else { "" };
    let rows = suites.into_iter().map(|suite| (suite.name, format!("{}{}", suite.about, note(suite))));
    crate::listed("Suites", rows)
}

/// Runs the chosen suites, and prints the summary or writes the results.
pub(crate) fn run(args: &Args) -> Result<ExitCode, String> {
    let suites = args.suites();
    if args.list {
        print!("{}", suite_list(suites));
        return Ok(ExitCode::SUCCESS);
    }
    let total = Stopwatch::start();
    let lines = match (args.quick, args.only.is_empty()) {
        (true, _) => run_quick()?,
        (false, false) => suites.into_iter().map(Suite::run).collect(),
        (false, true) => run_groups(&suites),
    };
    let report = Report { lines, wall: total.elapsed() };
    let code = if report.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    match &args.results {
        Some(file) => {
            let json = serde_json::to_string(&report.lines).map_err(|error| error.to_string())?;
            files::write(file, &json)?;
        }
        // The last line of the summary is read by programs: nothing is printed after it.
        None => print!("{report}"),
    }
    Ok(code)
}

impl Args {
    /// The suites in the order of the table.
    fn suites(&self) -> Vec<&'static Suite> {
        let is_wanted = |suite: &&Suite| match self.only.is_empty() {
            true => suite.group != Group::OnRequest,
            false => self.only.iter().any(|name| name == suite.name),
        };
        SUITES.iter().filter(is_wanted).collect()
    }
}

/// Runs all suites, and returns their results in the order of the table.
fn run_groups(suites: &[&'static Suite]) -> Vec<Line> {
    let of = |group: Group| suites.iter().copied().filter(move |suite| suite.group == group);
    let start = |group: Group| {
        let names: Vec<&str> = of(group).map(|suite| suite.name).collect();
        (SecondProcess::start(&names), names)
    };
    let apart = start(Group::Apart);
    let mut lines: Vec<Line> = of(Group::First).map(Suite::run).collect();
    let compute = start(Group::Compute);
    lines.extend(of(Group::Waiting).map(Suite::run));
    for (second, names) in [apart, compute] {
        let results = second.and_then(|second| second.finish(&names));
        lines.extend(results.unwrap_or_else(|message| without_results(&names, &message)));
    }
    lines.sort_by_key(|line| SUITES.iter().position(|suite| suite.name == line.suite));
    lines
}

/// The suites of a second process that returned no results have failed.
fn without_results(names: &[&str], message: &str) -> Vec<Line> {
    println!("{message}");
    let failure = message.lines().next().unwrap_or_default();
    let line = |name: &&str| Line {
        suite: (*name).to_string(),
        tally: Tally::failure(failure),
        time: std::time::Duration::ZERO,
        processor: None,
    };
    names.iter().map(line).collect()
}

/// Hosted CI services set this variable.
pub(crate) fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Call {
        #[command(flatten)]
        args: Args,
    }

    fn plan(line: &str) -> Result<Vec<&'static str>, clap::Error> {
        let call = Call::try_parse_from(["test"].into_iter().chain(line.split_whitespace()))?;
        Ok(call.args.suites().into_iter().map(|suite| suite.name).collect())
    }

    #[test]
    fn suites_run_in_the_order_of_the_table() {
        let all = "fmt tidy deny clippy build tests browser sim canary chaos small-disks doc-tests docs examples \
            fsync-errors features";
        assert_eq!(plan("").unwrap().join(" "), all);
        assert_eq!(plan("--only tidy,fmt").unwrap(), ["fmt", "tidy"]);
        assert_eq!(plan("--only=docs --only fmt").unwrap(), ["fmt", "docs"]);
        assert_eq!(plan("--only portable,fmt").unwrap(), ["fmt", "portable"]);
    }

    #[test]
    fn every_suite_belongs_to_one_group() {
        let of =
            |group: Group| SUITES.iter().filter(move |suite| suite.group == group).map(|suite| suite.name);
        assert_eq!(of(Group::Apart).collect::<Vec<_>>(), ["sim"]);
        assert_eq!(of(Group::Compute).collect::<Vec<_>>(), ["doc-tests", "docs", "features"]);
        assert_eq!(of(Group::OnRequest).collect::<Vec<_>>(), ["portable"]);
    }

    #[test]
    fn suites_without_results_have_failed() {
        let lines = without_results(&["sim", "docs"], "no results");
        assert_eq!(lines.len(), 2);
        assert!(lines.iter().all(|line| line.tally.counts() == (0, 1, 0)));
    }

    #[test]
    fn unknown_suites_and_arguments_are_refused() {
        for line in ["--only tset", "--only", "--fast", "--quick --only tidy"] {
            assert!(plan(line).is_err(), "{line}");
        }
    }
}
