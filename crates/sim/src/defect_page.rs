//! The page of the seeded defects, as the score found them.

use crate::report::Found;
use outlast_model::defect::Defect;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

const TOP: &str = "\
# Seeded defects

Mistakes that are built into the code behind the feature `test-hooks`, one at a time, to measure the tests: each must be found. `cargo \
xtask sim --score 0..2000 --page docs/internals/defects.md` writes this page. The invariants are those of the \
[simulator](../../crates/sim/src/check/mod.rs).

## In shipped code

";

/// The defects of the PostgreSQL scheduler, as a test of outlast-postgres found them: name, number of sequences, and the property that fell.
const SCHEDULER: &str = include_str!("../../../testdata/scheduler-defects.txt");

/// Writes the page. Returns `false` if it cannot be written.
pub(crate) fn write(page: &Path, found: &[Found], most_seeds: usize) -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sources = sources(&root.join("crates"));
    let mut text = format!(
        "{TOP}Seeds are the worlds that ran until one failed, of {most_seeds}. No world has PostgreSQL: for its scheduler they are \
         [generated sequences](../../crates/postgres/src/scheduler/sequences.rs) of events, of 2,000, and the property that fell is \
         written out.\n\n"
    );
    text.push_str(
        "| defect | family | place | wrong behaviour | seeds | fell |\n|---|---|---|---|---|---|\n",
    );
    for defect in Defect::ALL {
        let place = place(&root, &sources, *defect).unwrap_or_else(|| "no place".to_string());
        let row = found.iter().find(|(bug, ..)| bug.shipped() == Some(*defect));
        let (seeds, fell) = match row {
            Some((_, seeds, failure)) => (seeds.to_string(), code(failure).to_string()),
            None => by_sequences(*defect).unwrap_or_else(|| ("not found".to_string(), String::new())),
        };
        let (family, behaviour) = (defect.family(), defect.text().trim());
        let _ = writeln!(text, "| `{defect:?}` | {family} | `{place}` | {behaviour} | {seeds} | {fell} |");
    }
    text.push_str("\n## In the simulator's wrapper and in the memory store\n\n| defect | seeds | fell |\n|---|---|---|\n");
    for (bug, seeds, failure) in found.iter().filter(|(bug, ..)| bug.shipped().is_none()) {
        let _ = writeln!(text, "| `{}` | {seeds} | {} |", bug.name(), code(failure));
    }
    fs::write(page, text).is_ok()
}

/// The number of generated sequences that found a defect of the PostgreSQL scheduler, and the property that fell.
fn by_sequences(defect: Defect) -> Option<(String, String)> {
    let name = format!("{defect:?}");
    let mut found = SCHEDULER.lines().map(|line| line.splitn(3, ' '));
    let mut row = found.find_map(|mut words| (words.next()? == name).then_some(words))?;
    Some((row.next()?.to_string(), row.next()?.to_string()))
}

/// The code of a broken invariant.
fn code(failure: &str) -> &str {
    let code = failure.split(':').next().unwrap_or_default();
    if code.len() <= 3 { code } else { "a contradiction between rows" }
}

/// The file and the line that asks for the defect.
fn place(root: &Path, sources: &[PathBuf], defect: Defect) -> Option<String> {
    let wanted = format!("is_on(Defect::{defect:?})");
    sources.iter().find_map(|path| {
        let text = fs::read_to_string(path).ok()?;
        let line = text.lines().position(|line| line.contains(&wanted))? + 1;
        Some(format!("{}:{line}", path.strip_prefix(root).ok()?.display()))
    })
}

/// The Rust files below a folder, without tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.ends_with("model/src/defect.rs") {
            continue;
        }
        if path.is_dir() && !path.ends_with("tests") && !path.ends_with("target") {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_sim::{Bug, shipped_bugs};

    #[test]
    fn every_shipped_defect_has_exactly_one_place() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let sources = sources(&root.join("crates"));
        let texts: Vec<String> = sources.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
        for defect in Defect::ALL {
            let wanted = format!("is_on(Defect::{defect:?})");
            let places: usize = texts.iter().map(|text| text.matches(&wanted).count()).sum();
            assert_eq!(places, 1, "{defect:?}");
        }
        assert!(Defect::ALL.len() >= 40);
    }

    #[test]
    fn every_shipped_defect_is_found_by_worlds_or_by_sequences() {
        for defect in Defect::ALL {
            let is_of_worlds = shipped_bugs().contains(&Bug::Shipped(*defect));
            assert_ne!(by_sequences(*defect).is_some(), is_of_worlds, "{defect:?}");
        }
    }
}
