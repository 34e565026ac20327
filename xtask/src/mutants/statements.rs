//! Mutants of SQL. The fences of the store are conditions in its statements, where a tool for Rust does not look.

mod conditions;
mod equivalent;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::ledger::{CAUGHT, Ledger, MISSED, TIMEOUT};
use super::listed::{self, Mutant};
use super::target::Target;
use super::tool;
use crate::process;
use conditions::changes;

/// Where the statements are.
pub(super) const FOLDER: &str = "crates/sqlite/src/sql";
/// Seconds after which a test run hangs.
const PATIENCE: &str = "40";

/// All mutants except those that change nothing.
pub(super) fn list() -> Result<Vec<Mutant>, String> {
    let failed = |error: std::io::Error| format!("{FOLDER}: {error}");
    let mut names = Vec::new();
    for entry in fs::read_dir(process::root().join(FOLDER)).map_err(failed)? {
        names.push(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let mut mutants = Vec::new();
    for name in names {
        let file = format!("{FOLDER}/{name}");
        let text = fs::read_to_string(process::root().join(&file)).map_err(failed)?;
        mutants.extend(
            of_statement(&file, name.trim_end_matches(".sql"), &text).into_iter().map(|(mutant, _)| mutant),
        );
    }
    Ok(mutants)
}

/// The mutants of a statement, each with the text that it makes of it.
fn of_statement(file: &str, name: &str, text: &str) -> Vec<(Mutant, String)> {
    let wanted = changes(text).into_iter().filter(|change| !equivalent::is_listed(name, &change.what));
    let mutant = |change: conditions::Change| {
        let place = format!("{}:{}", change.line, change.column);
        let mutant = Mutant {
            file: file.to_string(),
            function: name.to_string(),
            name: format!("{file}:{place}: {}", change.what),
            key: format!("{file} {:016x} +{place} {}", listed::fingerprint(text), change.what),
        };
        (mutant, change.apply(text))
    };
    wanted.map(mutant).collect()
}

/// Tries these mutants with tests that are built once: the store reads the statement that it runs instead from a file. What
/// is found is kept one by one.
pub(super) fn run(
    target: &Target,
    home: &Path,
    mutants: &[&Mutant],
    ledger: &mut Ledger,
) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", home.display());
    fs::create_dir_all(home).map_err(failed)?;
    // A copy: nobody builds anything else in its place while it is used.
    let tests = home.join("tests");
    fs::copy(build(target)?, &tests).map_err(failed)?;
    println!("{}: {} mutants", target.name, mutants.len());
    if test(target, &tests, None) != MISSED {
        return Err(format!("{}: the tests fail without a mutant", target.name));
    }
    for mutant in mutants {
        let text = fs::read_to_string(process::root().join(&mutant.file)).map_err(failed)?;
        let made = of_statement(&mutant.file, &mutant.function, &text);
        let Some((_, mutated)) = made.into_iter().find(|(made, _)| made.key == mutant.key) else { continue };
        let file = home.join("mutant");
        fs::write(&file, format!("{text}\0{mutated}")).map_err(failed)?;
        let outcome = test(target, &tests, Some(&file));
        println!("{outcome:<9} {}", mutant.name);
        ledger.record(mutant.key.clone(), outcome);
        ledger.save()?;
    }
    Ok(())
}

/// Builds the tests; says where they are.
fn build(target: &Target) -> Result<PathBuf, String> {
    let mut args = vec!["test", "--no-run", "--message-format=json", "-p", target.package];
    args.extend(target.built);
    let mut command = process::cargo(&args);
    tool::speed_up(&mut command, target);
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cargo could not be run: {error}"))?;
    let messages = String::from_utf8_lossy(&output.stdout);
    let executable =
        messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).find_map(executable);
    executable
        .filter(|_| output.status.success())
        .ok_or_else(|| format!("{}: the tests do not build", target.name))
}

fn executable(message: Value) -> Option<PathBuf> {
    message["executable"].as_str().filter(|_| message["target"]["name"] == "it").map(PathBuf::from)
}

/// Those that fail fast come first: the others wait for what will never come.
const ROUNDS: &[&[&str]] =
    &[&["model::", "tokens::"], &["inline::"], &["waiting::", "bad_input::", "mailbox::"]];

fn test(target: &Target, tests: &Path, mutant: Option<&Path>) -> &'static str {
    let outcome = |round: &&[&str]| run_some(target, tests, round, mutant);
    ROUNDS.iter().map(outcome).find(|outcome| *outcome != MISSED).unwrap_or(MISSED)
}

fn run_some(target: &Target, tests: &Path, wanted: &[&str], mutant: Option<&Path>) -> &'static str {
    // It ends the tests when their time is over, which std cannot.
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", PATIENCE]).arg(tests).args(target.tests).args(wanted);
    command.current_dir(process::root().join("crates/sqlite"));
    tool::speed_up(&mut command, target);
    if let Some(mutant) = mutant {
        command.env("OUTLAST_STATEMENT_MUTANT", mutant);
    }
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match status.map(|status| status.code()) {
        Ok(Some(0)) => MISSED,
        Ok(Some(124 | 137)) => TIMEOUT,
        _ => CAUGHT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_mutant_has_a_key_of_its_own() {
        let mutants = list().unwrap();
        assert!(mutants.len() > 100, "{}", mutants.len());
        let keys: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.key.as_str()).collect();
        assert_eq!(keys.len(), mutants.len());
    }
}
