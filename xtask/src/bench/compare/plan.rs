//! What to run.

use super::case::{CASES, Case};
use super::table::Who;

pub(super) const HELP: &str = "\
cargo xtask bench compare [--only CASE,..] [--rounds N] [--quick] [--store file|memory]

Runs the same orchestrations with Outlast and with duroxide, next to hand-written floors.
Stores go to target/compare, or to the folder OUTLAST_BENCH_DIR, and are removed.

  --only LIST    only these cases, or all that start so: hello, chain,
                 hello-backlog, hello-closed, hello-idle, chain-one, chain-default, chain-many
  --rounds N     how often each is measured; default: 3, with --quick 1
  --quick        smaller cases
  --store WHERE  file (default), or memory, which has no floor";

pub(super) struct Plan {
    pub(super) cases: Vec<&'static Case>,
    pub(super) rounds: usize,
    pub(super) in_memory: bool,
    quick: bool,
}

impl Plan {
    pub(super) fn parse(args: &[String]) -> Result<Self, String> {
        let mut plan = Self { cases: CASES.iter().collect(), rounds: 3, in_memory: false, quick: false };
        let mut rounds = None;
        let mut args = args.iter().map(String::as_str);
        while let Some(option) = args.next() {
            let mut value = || args.next().ok_or_else(|| wrong(&format!("`{option}` needs a value")));
            match option {
                "--quick" => plan.quick = true,
                "--only" => plan.cases = chosen(value()?)?,
                "--rounds" => match value()?.parse() {
                    Ok(number) if number > 0 => rounds = Some(number),
                    _ => return Err(wrong("--rounds needs a number above 0")),
                },
                "--store" => match value()? {
                    "file" => plan.in_memory = false,
                    "memory" => plan.in_memory = true,
                    other => return Err(wrong(&format!("unknown store `{other}`"))),
                },
                _ => return Err(wrong(&format!("unknown option `{option}`"))),
            }
        }
        plan.rounds = rounds.unwrap_or(if plan.quick { 1 } else { 3 });
        Ok(plan)
    }

    /// The arguments of one process.
    pub(super) fn line(&self, case: &Case, who: Who, dispatchers: usize) -> String {
        let what = if self.quick { case.quick } else { case.full };
        let store = if self.in_memory { "memory" } else { "file" };
        let line = format!("{what} --dispatchers {dispatchers} --store {store} --limit-s 60");
        match who {
            Who::Floor => format!("floor {}", case.floor),
            Who::Peer => format!("{line} {}", case.peer).trim_end().to_string(),
            Who::Ours => format!("compare {line}"),
        }
    }
}

/// The cases of a list, in the order of the table.
fn chosen(list: &str) -> Result<Vec<&'static Case>, String> {
    let means = |word: &str, case: &Case| {
        case.name == word || case.name.split_once('-').is_some_and(|(group, _)| group == word)
    };
    for word in list.split(',') {
        if !CASES.iter().any(|case| means(word, case)) {
            return Err(wrong(&format!("unknown case `{word}`")));
        }
    }
    Ok(CASES.iter().filter(|case| list.split(',').any(|word| means(word, case))).collect())
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
        parse(line).unwrap().cases.iter().map(|case| case.name).collect()
    }

    #[test]
    fn a_group_means_all_its_cases() {
        assert_eq!(names("--only chain-many,hello-idle"), ["hello-idle", "chain-many"]);
        assert_eq!(names("--only hello"), ["hello-backlog", "hello-closed", "hello-idle"]);
        assert_eq!(names("--only hello,chain"), names(""));
    }

    #[test]
    fn a_quick_run_is_one_round_unless_told_otherwise() {
        for (line, rounds) in [("", 3), ("--quick", 1), ("--quick --rounds 5", 5), ("--rounds 2 --quick", 2)]
        {
            assert_eq!(parse(line).unwrap().rounds, rounds, "{line}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (line, text) in [
            ("--only hell", "`hell`"),
            ("--only", "`--only`"),
            ("--rounds 0", "--rounds"),
            ("--store disk", "`disk`"),
            ("--fast", "`--fast`"),
        ] {
            let Err(error) = parse(line) else { panic!("{line}") };
            assert!(error.contains(text) && error.contains("cargo xtask bench compare"), "{error}");
        }
    }

    #[test]
    fn only_the_peer_gets_its_options() {
        let plan = parse("--quick --store memory").unwrap();
        let case = CASES.iter().find(|case| case.name == "chain-one").unwrap();
        let common = "chain-one --steps 300 --dispatchers 4 --store memory --limit-s 60";
        assert_eq!(plan.line(case, Who::Peer, 4), format!("{common} --poll-ms 1"));
        assert_eq!(plan.line(case, Who::Ours, 4), format!("compare {common}"));
        assert_eq!(plan.line(case, Who::Floor, 0), "floor chain --count 1 --steps 500");
    }

    #[test]
    fn the_help_names_every_case() {
        assert!(CASES.iter().all(|case| HELP.contains(case.name)));
    }
}
