//! What to run, and where the results go.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::scenario::{self, Backend, Scenario};

pub(super) const HELP: &str = "\
cargo xtask bench compare [--quick] [--store STORE] [--only SCENARIO,..] [--rounds N] [--json FILE]
cargo xtask bench compare --paste [--json FILE,..]

Runs the same work with Outlast, with duroxide and with durare, next to hand-written floors. Stores go to
target/compare, or to the folder OUTLAST_BENCH_DIR, and are removed; so does a PostgreSQL with fsync on. The rows
go to FILE, a report with plots to the same name with `.html`.

  --quick        smaller scenarios and three rounds, within four minutes
  --store STORE  sqlite, with the stores in memory, or postgres; default: both
  --only LIST    only these scenarios, or all that start so: hello, fan-out, long-chain, asleep, ..
  --rounds N     how often each is measured; default: 5, with --quick 3
  --json FILE    default: target/compare.json
  --paste        runs nothing: puts the figures of FILE into docs/performance.md; with several,
                 those of all of them: one per store";

pub(super) struct Plan {
    pub(super) scenarios: Vec<&'static Scenario>,
    pub(super) rounds: usize,
    pub(super) quick: bool,
    pub(super) json: PathBuf,
    pub(super) paste: bool,
    /// By name: then it is a mistake if there is none.
    pub(super) is_store_asked_for: bool,
}

impl Plan {
    pub(super) fn parse(args: &[String]) -> Result<Self, String> {
        let mut plan = Self {
            scenarios: scenario::all().collect(),
            rounds: 5,
            quick: false,
            json: crate::process::target().join("compare.json"),
            paste: false,
            is_store_asked_for: false,
        };
        let (mut rounds, mut backend) = (None, None);
        let mut args = args.iter().map(String::as_str);
        while let Some(option) = args.next() {
            let mut value = || args.next().ok_or_else(|| wrong(&format!("`{option}` needs a value")));
            match option {
                "--quick" => plan.quick = true,
                "--paste" => plan.paste = true,
                "--store" => backend = Some(store(value()?)?),
                "--only" => plan.scenarios = chosen(value()?)?,
                "--json" => plan.json = value()?.into(),
                "--rounds" => match value()?.parse() {
                    Ok(number) if number > 0 => rounds = Some(number),
                    _ => return Err(wrong("--rounds needs a number above 0")),
                },
                _ => return Err(wrong(&format!("unknown option `{option}`"))),
            }
        }
        if let Some(backend) = backend {
            plan.leave_out(|scenario| scenario.backend != backend);
            plan.is_store_asked_for = true;
        }
        plan.rounds = rounds.unwrap_or(if plan.quick { 3 } else { 5 });
        Ok(plan)
    }

    pub(super) fn leave_out(&mut self, unwanted: impl Fn(&Scenario) -> bool) {
        self.scenarios.retain(|scenario| !unwanted(scenario));
    }

    pub(super) fn needs(&self, backend: Backend) -> bool {
        self.scenarios.iter().any(|scenario| scenario.backend == backend)
    }
}

fn store(name: &str) -> Result<Backend, String> {
    match name {
        "sqlite" => Ok(Backend::Embedded),
        "postgres" => Ok(Backend::Postgres),
        _ => Err(wrong(&format!("unknown store `{name}`; there are: sqlite postgres"))),
    }
}

/// The scenarios of a list, in the order of the table: by their name, or by words with which it begins.
fn chosen(list: &str) -> Result<Vec<&'static Scenario>, String> {
    let means = |word: &str, name: &str| {
        name.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    for word in list.split(',') {
        if !scenario::all().any(|scenario| means(word, scenario.name)) {
            let names: BTreeSet<&str> = scenario::all().map(|scenario| scenario.name).collect();
            let names: Vec<&str> = names.into_iter().collect();
            return Err(wrong(&format!("unknown scenario `{word}`; there are: {}", names.join(" "))));
        }
    }
    let wanted = |scenario: &&Scenario| list.split(',').any(|word| means(word, scenario.name));
    Ok(scenario::all().filter(wanted).collect())
}

fn wrong(message: &str) -> String {
    format!("bench compare: {message}\n\n{HELP}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Plan, String> {
        let args: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        Plan::parse(&args)
    }

    fn names(line: &str) -> Vec<&'static str> {
        parse(line).unwrap().scenarios.iter().map(|scenario| scenario.name).collect()
    }

    #[test]
    fn the_beginning_of_a_name_means_all_that_begin_so() {
        assert_eq!(names("--store sqlite --only sweep,chain-10"), ["chain-10", "sweep"]);
        let wide = ["fan-out-5", "fan-out-1000", "fan-out-5000"];
        assert_eq!(names("--only fan-out --store sqlite"), wide);
        assert_eq!(names("--only hello-idle --store sqlite"), ["hello-idle", "hello-idle-1ms"]);
        assert_eq!(names("").len(), scenario::all().count());
    }

    #[test]
    fn a_store_has_its_own_scenarios() {
        assert_eq!(names("--only chain-10"), ["chain-10", "chain-10"]);
        assert_eq!(names("--only chain-10,sweep --store postgres"), ["chain-10"]);
        let plan = parse("--store postgres").unwrap();
        assert!(plan.is_store_asked_for && plan.needs(Backend::Postgres) && !plan.needs(Backend::Embedded));
        let plan = parse("").unwrap();
        assert!(!plan.is_store_asked_for && plan.needs(Backend::Postgres) && plan.needs(Backend::Embedded));
    }

    #[test]
    fn a_quick_run_has_three_rounds_unless_told_otherwise() {
        for (line, rounds) in [("", 5), ("--quick", 3), ("--quick --rounds 1", 1), ("--rounds 7", 7)] {
            assert_eq!(parse(line).unwrap().rounds, rounds, "{line}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (line, text) in [
            ("--only hell", "`hell`"),
            ("--only", "`--only`"),
            ("--rounds 0", "--rounds"),
            ("--json", "`--json`"),
            ("--store oracle", "`oracle`"),
            ("--fast", "`--fast`"),
        ] {
            let Err(error) = parse(line) else { panic!("{line}") };
            assert!(error.contains(text) && error.contains("cargo xtask bench compare"), "{error}");
        }
    }
}
