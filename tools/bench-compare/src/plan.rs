//! The command line: the scenarios to run, and the files of the results.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Parser;
use outlast_toolkit::process;

use super::scenario::{self, Backend, Scenario};

/// Runs the same work with Outlast, with duroxide, durare and dbos, next to hand-written floors; on Cosmos DB it counts the
/// requests of Outlast and of duroxide-cdb on an emulated account. Stores, and a PostgreSQL
/// server with fsync on, are created in target/compare, or in the folder OUTLAST_BENCH_DIR, and removed. The rows go to
/// the file of --json, a report with plots to the same name with `.html`.
#[derive(Parser)]
#[command(name = "compare", bin_name = "cargo xtask bench compare")]
struct Args {
    /// Runs smaller scenarios in three rounds, within four minutes
    #[arg(long)]
    quick: bool,
    /// Runs the scenarios of one store: sqlite, together with the stores in memory, postgres, or cosmos, an emulated account
    /// that counts requests; default: sqlite and postgres
    #[arg(long, value_enum)]
    store: Option<Backend>,
    /// Runs only these scenarios: full names or the first words of names, for example `hello,fan-out`
    #[arg(long, value_name = "SCENARIO,..", value_parser = chosen)]
    only: Option<Scenarios>,
    /// How often each scenario is measured; default: 5, with --quick 3
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// The file of the rows; default: target/compare.json
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Runs nothing: writes the figures of the file of --json into docs/performance.md, those of cosmos into docs/cosmos.md.
    /// The file may be a list `FILE,FILE`, one for each store
    #[arg(long)]
    paste: bool,
}

type Scenarios = Vec<&'static Scenario>;

pub(super) struct Plan {
    pub(super) scenarios: Scenarios,
    pub(super) rounds: u32,
    pub(super) quick: bool,
    pub(super) json: PathBuf,
    pub(super) paste: bool,
    /// Whether a store was named: then a missing server is an error.
    pub(super) is_store_named: bool,
}

impl Plan {
    pub(super) fn parse(line: impl IntoIterator<Item = String>) -> Result<Self, clap::Error> {
        let args = Args::try_parse_from(["bench compare".to_string()].into_iter().chain(line))?;
        let mut plan = Self {
            scenarios: args.only.unwrap_or_else(|| scenario::all().collect()),
            rounds: args.rounds.unwrap_or(if args.quick { 3 } else { 5 }),
            quick: args.quick,
            json: args.json.unwrap_or_else(|| process::target().join("compare.json")),
            paste: args.paste,
            is_store_named: args.store.is_some(),
        };
        match args.store {
            Some(backend) => plan.leave_out(|scenario| scenario.backend != backend),
            None => plan.leave_out(|scenario| scenario.backend == Backend::Cosmos),
        }
        Ok(plan)
    }

    pub(super) fn leave_out(&mut self, unwanted: impl Fn(&Scenario) -> bool) {
        self.scenarios.retain(|scenario| !unwanted(scenario));
    }

    pub(super) fn needs(&self, backend: Backend) -> bool {
        self.scenarios.iter().any(|scenario| scenario.backend == backend)
    }
}

/// The scenarios of a list, in the order of the table. A word selects the scenarios whose names start with the word.
fn chosen(list: &str) -> Result<Vec<&'static Scenario>, String> {
    let means = |word: &str, name: &str| {
        name.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    for word in list.split(',') {
        if !scenario::all().any(|scenario| means(word, scenario.name)) {
            let names: BTreeSet<&str> = scenario::all().map(|scenario| scenario.name).collect();
            let names: Vec<&str> = names.into_iter().collect();
            return Err(format!("unknown scenario `{word}`; the scenarios are: {}", names.join(" ")));
        }
    }
    let wanted = |scenario: &&Scenario| list.split(',').any(|word| means(word, scenario.name));
    Ok(scenario::all().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Plan, clap::Error> {
        Plan::parse(line.split_whitespace().map(str::to_string))
    }

    fn names(line: &str) -> Vec<&'static str> {
        parse(line).unwrap().scenarios.iter().map(|scenario| scenario.name).collect()
    }

    #[test]
    fn the_first_words_of_a_name_select_all_scenarios_with_these_words() {
        assert_eq!(names("--store sqlite --only sweep,chain-10"), ["chain-10", "sweep"]);
        let wide = ["fan-out-5", "fan-out-1000", "fan-out-5000"];
        assert_eq!(names("--only fan-out --store sqlite"), wide);
        assert_eq!(names("--only hello-idle --store sqlite"), ["hello-idle", "hello-idle-1ms"]);
        let timed = scenario::all().filter(|scenario| scenario.backend != Backend::Cosmos);
        assert_eq!(names("").len(), timed.count());
    }

    #[test]
    fn a_store_has_its_own_scenarios() {
        assert_eq!(names("--only chain-10"), ["chain-10", "chain-10"]);
        assert_eq!(names("--only chain-10,sweep --store postgres"), ["chain-10"]);
        let plan = parse("--store postgres").unwrap();
        assert!(plan.is_store_named && plan.needs(Backend::Postgres) && !plan.needs(Backend::Embedded));
        assert_eq!(names("--store cosmos --only among"), ["among-100", "among-10000"]);
        let plan = parse("").unwrap();
        assert!(!plan.is_store_named && plan.needs(Backend::Postgres) && plan.needs(Backend::Embedded));
    }

    #[test]
    fn a_quick_run_has_three_rounds_by_default() {
        for (line, rounds) in [("", 5), ("--quick", 3), ("--quick --rounds 1", 1), ("--rounds 7", 7)] {
            assert_eq!(parse(line).unwrap().rounds, rounds, "{line}");
        }
    }

    #[test]
    fn errors_name_the_wrong_argument() {
        for (line, text) in [
            ("--only hell", "`hell`"),
            ("--only", "--only"),
            ("--rounds 0", "--rounds"),
            ("--json", "--json"),
            ("--store oracle", "oracle"),
            ("--fast", "--fast"),
        ] {
            let Err(error) = parse(line) else { panic!("{line}") };
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
