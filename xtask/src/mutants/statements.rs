//! Mutants of SQL. The fences of the store are conditions in its statements, where a tool for Rust does not look.

mod conditions;
mod equivalent;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::ledger::{CAUGHT, Ledger, MISSED, TIMEOUT, UNVIABLE};
use super::listed::{self, Mutant};
use super::target::Target;
use super::tool;
use crate::process;
use conditions::changes;

/// Where the statements are.
pub(super) const FOLDER: &str = "crates/sqlite/src/sql";
/// Seconds after which a test run hangs.
const PATIENCE: &str = "60";

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

/// Tries these mutants in a copy of the sources; what is found is kept one by one.
pub(super) fn run(
    target: &Target,
    home: &Path,
    mutants: &[&Mutant],
    ledger: &mut Ledger,
) -> Result<(), String> {
    let copy = home.join("copy");
    copy_sources(&copy)?;
    println!("{}: {} mutants", target.name, mutants.len());
    if test(target, &copy) != MISSED {
        return Err(format!("{}: the tests fail without a mutant", target.name));
    }
    for mutant in mutants {
        let file = copy.join(&mutant.file);
        let failed = |error: std::io::Error| format!("{}: {error}", file.display());
        let text = fs::read_to_string(&file).map_err(failed)?;
        let made = of_statement(&mutant.file, &mutant.function, &text);
        let Some((_, mutated)) = made.into_iter().find(|(made, _)| made.key == mutant.key) else { continue };
        fs::write(&file, mutated).map_err(failed)?;
        let outcome = test(target, &copy);
        fs::write(&file, text).map_err(failed)?;
        println!("{outcome:<9} {}", mutant.name);
        ledger.record(mutant.key.clone(), outcome);
        ledger.save()?;
    }
    Ok(())
}

/// What is under version control, as it is now.
fn copy_sources(copy: &Path) -> Result<(), String> {
    let _ = fs::remove_dir_all(copy);
    let root = process::root();
    let output = Command::new("git").args(["ls-files", "-z"]).current_dir(&root).output();
    let output = output.map_err(|error| format!("git could not be run: {error}"))?;
    for file in String::from_utf8_lossy(&output.stdout).split('\0').filter(|file| !file.is_empty()) {
        let to = copy.join(file);
        let made = to.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| fs::copy(root.join(file), &to)).map_err(|error| format!("{file}: {error}"))?;
    }
    Ok(())
}

fn test(target: &Target, copy: &Path) -> &'static str {
    let cargo = |program: &str, before: &[&str], after: &[&str]| {
        let mut command = Command::new(program);
        command.args(before).arg("test").args(target.tested_by.iter().flat_map(|package| ["-p", package]));
        command.args(target.built).args(after).current_dir(copy);
        tool::speed_up(&mut command, target);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()
    };
    if !cargo("cargo", &[], &["--no-run"]).is_ok_and(|status| status.success()) {
        return UNVIABLE;
    }
    // It ends the test as well as cargo, which std cannot.
    let timed = ["--kill-after=5", PATIENCE, "cargo"];
    match cargo("timeout", &timed, target.tests).map(|status| status.code()) {
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
