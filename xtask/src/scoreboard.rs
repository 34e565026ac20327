//! `cargo xtask scoreboard`: writes the page about attempts to break the promises. The figures come from the files that
//! the commands write with `--json`. The page is generated and never edited by hand.

mod page;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde::Deserialize;
use serde_json::{Value, json};

use outlast_toolkit::{files, process};

/// The page.
pub(crate) const PAGE: &str = "docs/reliability.md";
/// The folder of the figures.
const FIGURES: &str = "testdata/scoreboard";

/// The kinds of attempts.
const ATTEMPTS: &str = "testdata/scoreboard/attempts.toml";

#[derive(Deserialize)]
struct Attempts {
    attempt: Vec<Attempt>,
}

/// One kind of attempt.
#[derive(Deserialize)]
pub(crate) struct Attempt {
    /// The name of its file, without the extension.
    name: String,
    title: String,
    /// One sentence about the attempt, for the page.
    about: String,
    /// The command that repeats the attempt.
    command: String,
}

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Records the figures that a command wrote with --json, with the current commit, and writes the page
    Add {
        /// The name of the attempt, from testdata/scoreboard/attempts.toml
        name: String,
        /// The file that the command wrote
        file: PathBuf,
    },
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, String> {
    if let Some(Action::Add { name, file }) = &args.action {
        add(name, file)?;
    }
    let root = process::root();
    files::write(&root.join(PAGE), &generate(&root)?)?;
    println!("wrote {PAGE}");
    Ok(ExitCode::SUCCESS)
}

fn attempts(root: &Path) -> Result<Vec<Attempt>, String> {
    let attempts: Attempts = toml::from_str(&files::read(&root.join(ATTEMPTS))?)
        .map_err(|error| format!("{ATTEMPTS}: {error}"))?;
    Ok(attempts.attempt)
}

fn add(name: &str, file: &Path) -> Result<(), String> {
    if !attempts(&process::root())?.iter().any(|attempt| attempt.name == name) {
        return Err(format!("{ATTEMPTS} has no attempt `{name}`"));
    }
    let record = json!({
        "commit": git(&["rev-parse", "--short=10", "HEAD"])?,
        "date": git(&["log", "-1", "--format=%cs"])?,
        "figures": read(file)?,
    });
    files::write(&figures_of(&process::root(), name), &format!("{record:#}\n"))
}

fn figures_of(root: &Path, name: &str) -> PathBuf {
    root.join(FIGURES).join(format!("{name}.json"))
}

/// The text of the page for the recorded figures.
pub(crate) fn generate(root: &Path) -> Result<String, String> {
    let mut records = Vec::new();
    for attempt in attempts(root)? {
        let file = figures_of(root, &attempt.name);
        let record = if file.exists() { Some(read(&file)?) } else { None };
        records.push((attempt, record));
    }
    Ok(page::page(&records))
}

fn read(file: &Path) -> Result<Value, String> {
    serde_json::from_str(&files::read(file)?).map_err(|error| format!("{}: {error}", file.display()))
}

fn git(args: &[&str]) -> Result<String, String> {
    process::output(Command::new("git").args(args).current_dir(process::root()))
        .map(|text| text.trim().to_string())
}
