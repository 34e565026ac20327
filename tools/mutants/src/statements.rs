//! Mutants of SQL. The stores check tokens and leases in the conditions of their statements and functions, which cargo-mutants does
//! not read.

mod conditions;
mod dialect;
mod equivalent;
mod forms;
mod tokens;
mod writes;

use std::fs;
use std::path::Path;

use super::judge;
use super::listed::{self, Mutant};
use super::outcomes::Outcomes;
use super::target::Target;
pub(super) use dialect::Dialect;
use outlast_toolkit::{files, process};

/// All mutants of the SQL of a store, without the equivalent ones.
pub(super) fn list(dialect: Dialect) -> Result<Vec<Mutant>, String> {
    let mut mutants = Vec::new();
    for file in dialect.files()? {
        let text = files::read(&process::root().join(&file))?;
        mutants.extend(of_file(dialect, &file, &text).into_iter().map(|(mutant, _)| mutant));
    }
    Ok(mutants)
}

/// The name of a statement or function.
pub(super) fn name(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file).trim_end_matches(".sql")
}

/// The mutants of a file, each with the text that it makes of it.
fn of_file(dialect: Dialect, file: &str, text: &str) -> Vec<(Mutant, String)> {
    let is_wanted = |change: &conditions::Change| !equivalent::is_listed(file, text, change);
    let wanted = dialect.changes(file, text).into_iter().filter(is_wanted);
    let mutant = |change: conditions::Change| {
        let place = format!("{}:{}", change.line, change.column);
        let mutant = Mutant {
            file: file.to_string(),
            function: name(file).to_string(),
            name: format!("{file}:{place}: {}", change.what),
            key: format!("{file} {:016x} +{place} {}", listed::fingerprint(text), change.what),
            spot: None,
        };
        (mutant, change.apply(text))
    };
    wanted.map(mutant).collect()
}

/// The environment variable with the file of the selected mutant.
const VARIABLE: &str = "OUTLAST_STATEMENT_MUTANT";

/// Runs the tests for these mutants with one build: the tests make the store read the changed statement from a file.
pub(super) fn run(
    target: &Target,
    dialect: Dialect,
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
        let made = of_file(dialect, &mutant.file, &text);
        let Some((_, mutated)) = made.into_iter().find(|(made, _)| made.key == mutant.key) else { continue };
        let file = folder.join(number.to_string());
        fs::write(&file, format!("{text}\0{mutated}")).map_err(failed)?;
        written.push((*mutant, file));
    }
    judge::judge(target, &built.tests(home)?, VARIABLE, &written, outcomes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn keys_of_mutants_are_unique() {
        for dialect in [Dialect::Sqlite, Dialect::Postgres] {
            let mutants = list(dialect).unwrap();
            assert!(mutants.len() > 500, "{dialect:?}: {}", mutants.len());
            let keys: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.key.as_str()).collect();
            assert_eq!(keys.len(), mutants.len(), "{dialect:?}");
        }
    }

    #[test]
    fn sections_of_one_form_stay_balanced_in_every_mutant() {
        for file in Dialect::Postgres.files().unwrap() {
            let text = files::read(&process::root().join(&file)).unwrap();
            for (mutant, made) in of_file(Dialect::Postgres, &file, &text) {
                let count = |mark: &str| made.matches(mark).count();
                assert_eq!(count("{batch}") + count("{alone}"), count("{end}"), "{}", mutant.name);
                let open = |text: &str| text.matches('(').count() as i64 - text.matches(')').count() as i64;
                assert_eq!(open(&made), open(&text), "{}", mutant.name);
            }
        }
    }
}
