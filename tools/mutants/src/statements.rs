//! Mutants of SQL. The store checks tokens and leases in the conditions of its statements, which cargo-mutants does not
//! read.

mod conditions;
mod equivalent;

use std::fs;
use std::path::Path;

use super::judge;
use super::listed::{self, Mutant};
use super::outcomes::Outcomes;
use super::target::Target;
use conditions::changes;
use outlast_toolkit::process;

/// The folder of the statements.
pub(super) const FOLDER: &str = "crates/sqlite/src/sql";

/// All mutants, without the equivalent ones.
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
            spot: None,
        };
        (mutant, change.apply(text))
    };
    wanted.map(mutant).collect()
}

/// Runs the tests for these mutants with one build: the tests make the store read the changed statement from a file.
pub(super) fn run(
    target: &Target,
    home: &Path,
    mutants: &[&Mutant],
    outcomes: &mut Outcomes,
) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", home.display());
    let folder = home.join("statements");
    fs::create_dir_all(&folder).map_err(failed)?;
    let built = judge::build(target, &process::root())?;
    if !built.is_ok {
        return Err(format!("{}: the tests do not build", target.name));
    }
    let mut written = Vec::new();
    for (number, mutant) in mutants.iter().enumerate() {
        let text = fs::read_to_string(process::root().join(&mutant.file)).map_err(failed)?;
        let made = of_statement(&mutant.file, &mutant.function, &text);
        let Some((_, mutated)) = made.into_iter().find(|(made, _)| made.key == mutant.key) else { continue };
        let file = folder.join(number.to_string());
        fs::write(&file, format!("{text}\0{mutated}")).map_err(failed)?;
        written.push((*mutant, file));
    }
    judge::judge(target, &built.tests(home)?, "OUTLAST_STATEMENT_MUTANT", &written, outcomes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn keys_of_mutants_are_unique() {
        let mutants = list().unwrap();
        assert!(mutants.len() > 100, "{}", mutants.len());
        let keys: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.key.as_str()).collect();
        assert_eq!(keys.len(), mutants.len());
    }
}
