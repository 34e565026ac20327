//! `cargo xtask bench engine`: counts the instructions of the engine's hot paths. A count does not depend on the load of
//! the machine, so a regression of a few percent is visible.

use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::{Command, Stdio};

use outlast_toolkit::files::{read, write};
use outlast_toolkit::page::{self, grouped};
use outlast_toolkit::{installed, process};

/// The name and the description of a case, and the number of its events.
const CASES: &[(&str, &str, u64)] = &[
    ("replay", "replay of 10,000 events", 10_000),
    ("warm-turns", "100 warm turns after 10,000 events", 200),
    ("typed-turns", "the same turns by the typed layer", 200),
    ("join", "a join of 10,000, 100 outcomes a turn", 20_000),
];
const RECORD: &str = "testdata/engine-instructions.json";
const PAGE: &str = "docs/performance.md";
const BEGIN: &str = "<!-- engine instructions -->";
const END: &str = "<!-- end of engine instructions -->";
/// A larger increase fails the command.
const MOST_PERCENT: f64 = 3.0;
/// A typed call may cost this much more than the same call of the string API.
const MOST_PERCENT_TYPED: f64 = 2.0;

/// Counts, and compares with the recorded counts. With `record` it records the counts instead. Returns whether no case is slower.
pub(crate) fn run(record: bool) -> Result<bool, String> {
    installed::find("valgrind", "`cargo xtask bench engine`")?;
    let (mut counts, mut whole_runs) = (Vec::new(), Vec::new());
    for (case, ..) in CASES {
        let (with, without) = (instructions(case, true)?, instructions(case, false)?);
        counts.push(with.saturating_sub(without));
        whole_runs.push(with);
    }
    let root = process::root();
    let known = recorded(&root.join(RECORD));
    let mut verdict = report(&counts, &known);
    println!("{}", verdict.table);
    let percent = typed_percent(&whole_runs);
    println!(
        "a typed call takes {percent:+.2} % more instructions than the call by text, {MOST_PERCENT_TYPED} % are allowed"
    );
    if percent > MOST_PERCENT_TYPED {
        verdict.slower.push(format!("typed-turns: {percent:+.2} % more than warm-turns"));
    }
    if record {
        let figures: Map<String, Value> =
            CASES.iter().zip(&counts).map(|((case, ..), count)| (case.to_string(), json!(count))).collect();
        let text = format!("{:#}\n", Value::Object(figures));
        write(&root.join(RECORD), &text)?;
        let path = root.join(PAGE);
        write(&path, &page::between(&read(&path)?, (BEGIN, END), &table(&counts))?)?;
        println!("{RECORD} and {PAGE} are written");
        return Ok(true);
    }
    for slower in &verdict.slower {
        println!("slower: {slower}");
    }
    Ok(verdict.slower.is_empty())
}

/// The additional instructions of typed calls, in percent. Whole runs are compared, with their preparation, which makes the same
/// calls: in the measured turns alone, the allocator's work for the preparation would count for one of the two.
fn typed_percent(counts: &[u64]) -> f64 {
    let count = |name: &str| {
        let found = CASES.iter().zip(counts).find(|((case, ..), _)| *case == name);
        found.map_or(0.0, |(_, count)| *count as f64)
    };
    (count("typed-turns") / count("warm-turns").max(1.0) - 1.0) * 100.0
}

/// The instructions of one run, counted by valgrind.
fn instructions(case: &str, measured: bool) -> Result<u64, String> {
    let program = std::env::current_exe().map_err(|error| format!("the path of this program: {error}"))?;
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program).args(["engine", case]);
    if !measured {
        command.arg("--setup-only");
    }
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("`{}`: {error}", process::display(&command)))?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    match collected(&text).filter(|_| output.status.success()) {
        Some(count) => Ok(count),
        None => Err(format!("`{}` failed:\n{text}", process::display(&command))),
    }
}

/// Reads the line `==12== Collected : 123` of callgrind.
fn collected(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
}

fn recorded(path: &Path) -> Map<String, Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

struct Verdict {
    table: String,
    slower: Vec<String>,
}

fn report(counts: &[u64], known: &Map<String, Value>) -> Verdict {
    let mut verdict = Verdict { table: String::new(), slower: Vec::new() };
    for ((case, title, events), count) in CASES.iter().zip(counts) {
        let change = known.get(*case).and_then(Value::as_f64).filter(|old| *old > 0.0);
        let change = change.map(|old| (*count as f64 / old - 1.0) * 100.0);
        let shown = change.map_or("not on record".to_string(), |percent| format!("{percent:+.1} %"));
        let each = count / events;
        verdict.table += &format!("{title:<40} {:>14} {each:>8} per event   {shown}\n", grouped(*count));
        if let Some(percent) = change.filter(|percent| *percent > MOST_PERCENT) {
            verdict.slower.push(format!("{case}: {percent:+.1} %, {MOST_PERCENT} % are allowed"));
        }
    }
    verdict
}

fn table(counts: &[u64]) -> String {
    let mut table = "| hot path | instructions | per event |\n|---|---|---|\n".to_string();
    for ((_, title, events), count) in CASES.iter().zip(counts) {
        table += &format!("| {title} | {} | {} |\n", grouped(*count), grouped(count / events));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_read_from_the_output_of_callgrind() {
        assert_eq!(collected("==7== Events    : Ir\n==7== Collected : 2345\n==7==\n"), Some(2_345));
        assert_eq!(collected("==7== no such thing"), None);
    }

    #[test]
    fn only_an_increase_above_the_limit_is_reported() {
        let known = json!({ "replay": 1_000_000, "warm-turns": 1_000_000 });
        let known = known.as_object().unwrap();
        let verdict = report(&[1_029_000, 1_031_000, 4, 5], known);
        assert_eq!(verdict.slower, ["warm-turns: +3.1 %, 3 % are allowed"]);
        assert!(
            verdict.table.contains("+2.9 %") && verdict.table.contains("not on record"),
            "{}",
            verdict.table
        );
        assert!(report(&[900_000, 1, 1, 1], known).slower.is_empty(), "a decrease passes");
    }

    #[test]
    fn typed_calls_are_compared_with_calls_by_text() {
        assert!((typed_percent(&[1, 1_000, 1_015, 1]) - 1.5).abs() < 1e-9);
    }

    #[test]
    fn the_page_shows_instructions_per_event() {
        assert!(table(&[10_000, 2_000, 2_000, 1_234_567]).contains("| 1,234,567 | 61 |"));
    }
}
