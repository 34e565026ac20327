//! The scoreboard: docs/reliability.md shows the records of all rows.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use outlast_packages::code::Hashes;
use outlast_toolkit::page::grouped;
use outlast_toolkit::{files, process};
use serde_json::Value;

use crate::figures::Figures;
use crate::jobs::{JOBS, Job};
use crate::record::{Change, Failure, Progress, Record};
use crate::stamp::{KEY, Stamp, stamped_file};

/// The folder of the records: a file for each row.
pub const FOLDER: &str = "testdata/scoreboard/";

/// The commands of `cargo xtask scoreboard`.
#[derive(clap::Subcommand)]
pub enum Scoreboard {
    /// Records the figures that `cargo xtask COMMAND --json FILE` wrote, with the commit and the code of that run
    Add {
        /// The name of the row: docs/reliability.md has a comment `<!-- figures: NAME -->`
        name: String,
        /// The file that the command wrote
        file: PathBuf,
    },
    /// Runs a command that writes figures to FILE, and adds the commit and the code of the run to FILE
    Run {
        /// The file that the command writes
        file: PathBuf,
        /// The command and its arguments
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
}

impl Scoreboard {
    /// Writes the record, and then with `write_page` the scoreboard; or runs the command.
    pub fn run(&self, write_page: impl FnOnce() -> Result<ExitCode, String>) -> Result<ExitCode, String> {
        match self {
            Self::Add { name, file } => {
                record(name, file, &files::read(file)?)?.write(&process::root().join(FOLDER), name)?;
                write_page()
            }
            Self::Run { file, command } => stamped_file(file, || {
                process::run(
                    Command::new(command.first().map_or("", String::as_str)).args(command.iter().skip(1)),
                )
            }),
        }
    }
}

/// The record of the figures of one run.
fn record(name: &str, file: &Path, text: &str) -> Result<Record, String> {
    let failed = |error: serde_json::Error| format!("{}: {error}", file.display());
    let mut figures: Figures = serde_json::from_str(text).map_err(failed)?;
    let file = file.display();
    let stamp = figures.remove(KEY).ok_or_else(|| {
        format!("{file} does not name the commit of its run: write it with `cargo xtask scoreboard run {file} -- COMMAND`")
    })?;
    let stamp: Stamp = serde_json::from_value(stamp).map_err(|error| format!("{file}: {error}"))?;
    Ok(Record { stamp: stamp.of_row(name), figures, progress: None, failures: Vec::new() })
}

/// The record of a row among these files, which are pairs of a path and a text.
pub(crate) fn find(name: &str, files: &[(&str, &str)]) -> Result<Option<Record>, String> {
    let path = format!("{FOLDER}{name}.json");
    let file = files.iter().find(|(file, _)| *file == path);
    file.map(|(_, text)| Record::parse(Path::new(&path), text)).transpose()
}

/// The figures of a row, with their date and commit, and whether the shipped code has changed since. A job without a record was
/// not reached.
pub fn show(name: &str, files: &[(&str, &str)], code: &Hashes) -> Result<String, String> {
    let (record, job) = (find(name, files)?, JOBS.iter().find(|job| job.name == name));
    let mut out = match (&record, job) {
        (Some(record), _) => state(name, record, code, job),
        (None, Some(_)) => "Not reached on this code.".to_string(),
        (None, None) => return Err(format!("there is no job `{name}`, and no `{FOLDER}{name}.json`")),
    };
    if let Some(job) = job {
        let _ = write!(out, "\n\n`cargo xtask prove --only {name}` runs {}.", job.example());
    }
    out.push('\n');
    let Some(Record { figures, failures, .. }) = record else { return Ok(out) };
    if !failures.is_empty() {
        out.push_str("\n| failed chunk | date | commit |\n|---|---|---|\n");
        for Failure { command, date, commit } in &failures {
            let _ = writeln!(out, "| `{}` | {date} | {commit} |", command.replace('|', "\\|"));
        }
    }
    if !figures.is_empty() {
        out.push_str("\n| figure | |\n|---|---|\n");
        rows(&mut out, "", &figures);
    }
    Ok(out)
}

/// Date and commit of a record, whether its code has changed, and how much of its job is done on this code.
fn state(name: &str, record: &Record, code: &Hashes, job: Option<&Job<'_>>) -> String {
    let Stamp { commit, date, dirty, .. } = &record.stamp;
    let dirty = if *dirty { " with uncommitted changes" } else { "" };
    let change = record.change(name, code);
    let mut out = format!("{date}, commit {commit}{dirty}. Shipped code changed since: {change}.");
    if let (Change::No, Some(job), Some(Progress { done, .. })) = (&change, job, record.progress) {
        let _ = write!(out, " {} of {} {} are done.", grouped(done), grouped(job.target), job.unit);
    }
    match (record.failures.len(), &change) {
        (0, _) => {}
        (count, Change::No) => drop(write!(out, " **Failed chunks on this code: {count}.**")),
        (count, _) => drop(write!(out, " Failed chunks on that code: {count}.")),
    }
    out
}

/// One row for each figure. The names of the figures in a nested map start with the name of the map.
fn rows(out: &mut String, group: &str, figures: &Figures) {
    for (key, value) in figures {
        let name = format!("{group}{}", key.replace('_', " "));
        match value {
            Value::Object(figures) => rows(out, &format!("{name}: "), figures),
            other => drop(writeln!(out, "| {name} | {} |", shown(other))),
        }
    }
}

pub(crate) fn shown(value: &Value) -> String {
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
    use crate::record::tests::code;

    const PATH: &str = "testdata/scoreboard/sim.json";

    fn shown_record(record: &str, code: &Hashes) -> String {
        show("sim", &[(PATH, record)], code).unwrap()
    }

    #[test]
    fn each_figure_is_a_row() {
        let figures = r#"{"seeds": 1234567, "hours": 2.25, "failing_seeds": [], "faults_by_kind": {"lost_answer": 12}}"#;
        let record = format!(r#"{{"commit": "abc", "date": "2026-01-02", "figures": {figures}}}"#);
        let expected = "2026-01-02, commit abc. Shipped code changed since: yes (the record has no hash of the code).\n\n\
            `cargo xtask prove --only sim` runs chunks such as `cargo xtask sim --seeds 0..10000 --json FILE`.\n\n\
            | figure | |\n|---|---|\n| failing seeds | none |\n| faults by kind: lost answer | 12 |\n| hours | 2.2 |\n\
            | seeds | 1,234,567 |\n";
        assert_eq!(shown_record(&record, &Hashes::new()), expected);
        assert!(show("gone", &[], &Hashes::new()).unwrap_err().contains("no job `gone`"));
    }

    #[test]
    fn a_row_names_its_commit_its_progress_and_the_changed_packages() {
        let mut record = crate::record::tests::record("sim", "1", 20_000);
        record.stamp.dirty = true;
        let text = serde_json::to_string(&record).unwrap();
        let (same, mut other) = (code("1"), code("1"));
        other.insert("engine".to_string(), "2".to_string());
        let first = |code: &Hashes| shown_record(&text, code).lines().next().unwrap().to_string();
        let start = "2026-01-02, commit abc with uncommitted changes. Shipped code changed since:";
        assert_eq!(first(&same), format!("{start} no. 20,000 of 300,000 seeds are done."));
        assert_eq!(first(&other), format!("{start} yes (engine)."), "nothing is done on this code");
    }

    #[test]
    fn row_without_a_record_was_not_reached() {
        let text = show("sim", &[], &code("1")).unwrap();
        assert!(
            text.starts_with("Not reached on this code.\n\n`cargo xtask prove --only sim` runs "),
            "{text}"
        );
        assert!(!text.contains("| figure |"), "{text}");
    }

    #[test]
    fn failed_chunks_are_shown_with_their_commands() {
        let mut record = crate::record::tests::record("sim", "1", 20_000);
        record.failures.push(crate::record::tests::failure());
        let text = serde_json::to_string(&record).unwrap();
        let shown = shown_record(&text, &code("1"));
        assert!(shown.contains("seeds are done. **Failed chunks on this code: 1.**\n"), "{shown}");
        assert!(
            shown.contains("| `cargo xtask sim --seeds 0..10 --json FILE` | 2026-01-03 | def |\n"),
            "{shown}"
        );
        assert!(shown_record(&text, &code("2")).contains(" Failed chunks on that code: 1.\n"));
    }

    #[test]
    fn every_job_has_a_row_on_the_page() {
        let page = files::read(&process::root().join("docs/reliability.md")).unwrap();
        let missing: Vec<&str> = JOBS
            .iter()
            .map(|job| job.name)
            .filter(|name| !page.contains(&format!("<!-- figures: {name} -->")))
            .collect();
        assert_eq!(missing, [""; 0]);
    }

    #[test]
    fn figures_need_the_commit_of_their_run() {
        let record = |text: &str| record("sim", Path::new("f.json"), text);
        assert!(record(r#"{"seeds": 7}"#).unwrap_err().contains("scoreboard run f.json -- COMMAND"));
        let run = r#"{"commit": "def", "date": "2026-01-02", "dirty": true, "code": {"engine": "1", "server": "2"}}"#;
        let stamped = record(&format!(r#"{{"seeds": 7, "run": {run}}}"#)).unwrap();
        assert_eq!((stamped.stamp.commit.as_str(), stamped.stamp.dirty), ("def", true));
        assert_eq!(stamped.stamp.code.into_keys().collect::<Vec<_>>(), ["engine"]);
        assert_eq!(stamped.figures.len(), 1);
    }
}
