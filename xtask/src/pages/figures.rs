//! Recorded figures of the attempts to break the promises. The commands of the attempts write them with `--json`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use outlast_toolkit::page::grouped;
use outlast_toolkit::{files, process};
use serde_json::{Value, json};

use super::Sources;

/// The folder of the figures: a file for each attempt.
pub(crate) const FOLDER: &str = "testdata/scoreboard/";

#[derive(clap::Subcommand)]
pub(crate) enum Scoreboard {
    /// Records the figures that a command wrote with --json, with the current commit, and writes the page
    Add {
        /// The name of the attempt: docs/reliability.md has a comment `<!-- figures: NAME -->`
        name: String,
        /// The file that the command wrote
        file: PathBuf,
    },
}

impl Scoreboard {
    pub(crate) fn run(&self) -> Result<ExitCode, String> {
        let Self::Add { name, file } = self;
        let record = json!({
            "commit": git(&["rev-parse", "--short=10", "HEAD"])?,
            "date": git(&["log", "-1", "--format=%cs"])?,
            "figures": parse(file, &files::read(file)?)?,
        });
        files::write(&process::root().join(path_of(name)), &format!("{record:#}\n"))?;
        super::run()
    }
}

fn path_of(name: &str) -> String {
    format!("{FOLDER}{name}.json")
}

fn git(args: &[&str]) -> Result<String, String> {
    process::output(Command::new("git").args(args).current_dir(process::root()))
        .map(|text| text.trim().to_string())
}

fn parse(file: &Path, text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("{}: {error}", file.display()))
}

/// The figures of an attempt, with their date and commit.
pub(super) fn show(name: &str, sources: Sources<'_>) -> Result<String, String> {
    let path = path_of(name);
    let (_, text) = sources.iter().find(|(file, _)| *file == path).ok_or_else(|| {
        format!("there is no `{path}`: record the figures with `cargo xtask scoreboard add {name} FILE`")
    })?;
    let record = parse(Path::new(&path), text)?;
    let field = |key: &str| record.get(key).and_then(Value::as_str).unwrap_or("?");
    let mut out = format!("{}, commit {}\n\n| figure | |\n|---|---|\n", field("date"), field("commit"));
    rows(&mut out, "", record.get("figures").unwrap_or(&Value::Null));
    Ok(out)
}

/// One row for each figure. The names of the figures in a nested map start with the name of the map.
fn rows(out: &mut String, group: &str, figures: &Value) {
    for (key, value) in figures.as_object().into_iter().flatten() {
        let name = format!("{group}{}", key.replace('_', " "));
        match value {
            Value::Object(_) => rows(out, &format!("{name}: "), value),
            other => drop(writeln!(out, "| {name} | {} |", shown(other))),
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) if items.is_empty() => "none".to_string(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_u64() {
            Some(number) => grouped(number),
            None => number.as_f64().map_or_else(|| number.to_string(), |number| format!("{number:.1}")),
        },
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_is_a_row() {
        let figures = r#"{"seeds": 1234567, "hours": 2.25, "failing_seeds": [], "faults_by_kind": {"lost_answer": 12}}"#;
        let record = format!(r#"{{"commit": "abc", "date": "2026-01-02", "figures": {figures}}}"#);
        let sources = [("testdata/scoreboard/sim.json", record.as_str())];
        let expected = "2026-01-02, commit abc\n\n| figure | |\n|---|---|\n| failing seeds | none |\n\
            | faults by kind: lost answer | 12 |\n| hours | 2.2 |\n| seeds | 1,234,567 |\n";
        assert_eq!(show("sim", &sources).unwrap(), expected);
        assert!(show("gone", &sources).unwrap_err().contains("scoreboard add gone"));
    }
}
