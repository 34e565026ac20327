//! The commit and the code of a run, taken when the run starts.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use outlast_packages::code::{self, Hashes};
use outlast_toolkit::{files, process};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::jobs;

/// The key of the stamp in a file of figures.
pub(crate) const KEY: &str = "run";

/// Paths whose changes do not change a run: records, pages, and inputs that fuzzing finds.
const UNRELATED: [&str; 3] = [":!testdata/scoreboard", ":!*.md", ":!fuzz/corpus"];

/// The commit and the code of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) commit: String,
    pub(crate) date: String,
    /// The working tree differed from the commit.
    #[serde(default)]
    pub(crate) dirty: bool,
    /// The hashes of the shipped code. Older records have none.
    #[serde(default, skip_serializing_if = "Hashes::is_empty")]
    pub(crate) code: Hashes,
}

impl Stamp {
    /// The stamp of a run that starts now.
    pub(crate) fn take() -> Result<Self, String> {
        let mut status = vec!["status", "--porcelain", "--", "."];
        status.extend(UNRELATED);
        Ok(Self {
            commit: output("git", &["rev-parse", "--short=10", "HEAD"])?,
            date: output("date", &["-u", "+%F"])?,
            dirty: !output("git", &status)?.is_empty(),
            code: code::of_working_tree()?,
        })
    }

    /// The stamp with the hashes that concern a row.
    pub(crate) fn of_row(mut self, row: &str) -> Self {
        let packages = jobs::packages(row);
        self.code.retain(|name, _| packages.contains(&name.as_str()));
        self
    }
}

fn output(program: &str, args: &[&str]) -> Result<String, String> {
    let text = process::output(Command::new(program).args(args).current_dir(process::root()))?;
    Ok(text.trim().to_string())
}

/// Runs a command of these arguments, and adds the commit and the code of the run to the file that `--json` names.
pub fn stamped(args: &[String], run: impl FnOnce() -> Result<ExitCode, String>) -> Result<ExitCode, String> {
    match json_file(args) {
        Some(file) => stamped_file(&file, run),
        None => run(),
    }
}

/// Runs a command that writes figures to a file, and adds the commit and the code of the run to it.
pub(crate) fn stamped_file(
    file: &Path,
    run: impl FnOnce() -> Result<ExitCode, String>,
) -> Result<ExitCode, String> {
    let (stamp, before) = (Stamp::take()?, found(file));
    let code = run()?;
    // A command that stops early leaves the file of a former run.
    if let Some((path, text)) = found(file)
        && before.is_none_or(|(_, before)| before != text)
    {
        files::write(&path, &with_stamp(&text, &stamp)?)?;
    }
    Ok(code)
}

fn json_file(args: &[String]) -> Option<PathBuf> {
    let at = args.iter().position(|arg| arg == "--json");
    let next = at.and_then(|at| args.get(at + 1)).map(String::as_str);
    next.or_else(|| args.iter().find_map(|arg| arg.strip_prefix("--json="))).map(PathBuf::from)
}

/// The file and its text. Some commands run in the caller's folder, the others in the root.
fn found(file: &Path) -> Option<(PathBuf, String)> {
    let paths = [file.to_path_buf(), process::root().join(file)];
    paths.into_iter().find_map(|path| Some((path.clone(), files::read(&path).ok()?)))
}

/// The figures with the stamp under its key.
fn with_stamp(text: &str, stamp: &Stamp) -> Result<String, String> {
    let failed = |error: serde_json::Error| format!("the figures cannot be read: {error}");
    let mut figures: Value = serde_json::from_str(text).map_err(failed)?;
    if let Some(figures) = figures.as_object_mut() {
        figures.insert(KEY.to_string(), serde_json::to_value(stamp).map_err(failed)?);
    }
    Ok(format!("{figures:#}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_string).collect()
    }

    #[test]
    fn a_run_adds_its_stamp_to_the_file_that_it_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("figures.json");
        let args = words(&format!("sim --json {}", file.display()));
        let write = || {
            files::write(&file, "{\"seeds\": 7}")?;
            Ok(ExitCode::SUCCESS)
        };
        stamped(&args, write).unwrap();
        let text = files::read(&file).unwrap();
        let figures: Value = serde_json::from_str(&text).unwrap();
        let stamp: Stamp = serde_json::from_value(figures[KEY].clone()).unwrap();
        assert_eq!(figures["seeds"], 7);
        assert!(stamp.commit.len() >= 10 && stamp.code.contains_key("engine"), "{stamp:?}");

        stamped(&args, || Ok(ExitCode::FAILURE)).unwrap();
        assert_eq!(files::read(&file).unwrap(), text, "a run that writes nothing leaves the old stamp");
    }

    #[test]
    fn the_file_is_the_value_of_json() {
        assert_eq!(json_file(&words("--seeds 0..9 --json a.json")), Some("a.json".into()));
        assert_eq!(json_file(&words("sqlite --json=b.json")), Some("b.json".into()));
        assert_eq!(json_file(&words("sqlite --json")), None);
    }

    #[test]
    fn a_row_keeps_the_hashes_of_its_packages() {
        let code = ["engine", "postgres", "server"].map(|name| (name.to_string(), "1".to_string())).into();
        let stamp = Stamp { code, ..Stamp::default() };
        let names = |row: &str| stamp.clone().of_row(row).code.into_keys().collect::<Vec<_>>();
        assert_eq!(names("sweep"), ["engine"]);
        assert_eq!(names("sim"), ["engine", "postgres"]);
    }
}
