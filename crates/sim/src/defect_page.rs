//! The page of the seeded defects, as the score found them.

use crate::report::Found;
use outlast_model::defect::{Defect, Judge};
use outlast_sim::{BUGS, Bug};
use std::collections::BTreeMap;
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

/// The defects of holds, resets and the audit of the stores of servers: name, and the validation that fails, as tests of the stores check.
const STORES: &str = include_str!("../../../testdata/store-defects.txt");

/// Writes the page. Defects that were not scored keep their cells. Returns `false` if the page cannot be written.
pub(crate) fn write(page: &Path, scored: &[Bug], found: &[Found]) -> bool {
    let kept = Kept::of(&fs::read_to_string(page).unwrap_or_default());
    fs::write(page, text(scored, found, &kept)).is_ok()
}

/// The cells of a defect: the number of seeds, and the invariant that fell.
type Cells = (String, String);

/// The cells of a page that was written before.
struct Kept {
    shipped: BTreeMap<String, Cells>,
    wrapped: BTreeMap<String, Cells>,
}

impl Kept {
    fn of(page: &str) -> Self {
        let (shipped, wrapped) = tables(page);
        Self { shipped: rows(shipped), wrapped: rows(wrapped) }
    }
}

/// The rows of a table of defects, by their names. The last two cells are those of the score.
fn rows(table: &str) -> BTreeMap<String, Cells> {
    let cells = |line: &str| -> Option<(String, Cells)> {
        let cells: Vec<&str> = line.strip_prefix("| `")?.strip_suffix(" |")?.split(" | ").collect();
        let [name, .., seeds, fell] = cells.as_slice() else { return None };
        Some((name.trim_end_matches('`').to_string(), ((*seeds).to_string(), (*fell).to_string())))
    };
    table.lines().filter_map(cells).collect()
}

/// The start of the second table.
const WRAPPED: &str = "\n## In the simulator's wrapper and in the memory store\n";

/// The start of the third table.
const OF_STORES: &str = "\n## Holds, resets and the audit in PostgreSQL and Cosmos DB\n";

/// The tables of the defects that were scored: shipped ones, and those of the wrapper.
fn tables(page: &str) -> (&str, &str) {
    let scored = page.split_once(OF_STORES).map_or(page, |(scored, _)| scored);
    scored.split_once(WRAPPED).unwrap_or((scored, ""))
}

fn text(scored: &[Bug], found: &[Found], kept: &Kept) -> String {
    let cells = |bug: Bug, kept: Option<&Cells>| match found.iter().find(|(found, ..)| *found == bug) {
        Some((_, seeds, failure)) => (seeds.to_string(), code(failure).to_string()),
        None if scored.contains(&bug) => ("not found".to_string(), String::new()),
        None => kept.cloned().unwrap_or_else(|| ("not scored".to_string(), String::new())),
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sources = sources(&root.join("crates"));
    let mut text = format!(
        "{TOP}Seeds are the worlds that ran until one failed, of 2,000. The scheduler of the PostgreSQL store also runs alone: `SEEDS + \
         SEQUENCES` has the number of [generated sequences](../../crates/postgres/src/scheduler/sequences.rs) of events until one \
         failed, of 2,000, and then the property that fell. `–`: worlds need not find the defect, because another poll finds the item before \
         a promise of the runtime breaks.\n\n"
    );
    text.push_str(
        "| defect | family | place | wrong behaviour | seeds | fell |\n|---|---|---|---|---|---|\n",
    );
    let place = |defect| place(&root, &sources, defect).unwrap_or_else(|| "no place".to_string());
    for defect in Defect::ALL.iter().filter(|defect| !is_of_stores(**defect)) {
        let place = place(*defect);
        let name = format!("{defect:?}");
        let (mut seeds, mut fell) = cells(Bug::Shipped(*defect), kept.shipped.get(&name));
        if let Some((sequences, property)) = by_sequences(*defect) {
            (seeds, fell) = match defect.judge() {
                Judge::Sequences => (format!("– + {sequences}"), property),
                _ => (
                    format!("{} + {sequences}", first(&seeds, " + ")),
                    format!("{}; {property}", first(&fell, "; ")),
                ),
            };
        }
        let (family, behaviour) = (defect.family(), defect.text().trim());
        let _ = writeln!(text, "| `{name}` | {family} | `{place}` | {behaviour} | {seeds} | {fell} |");
    }
    let _ = write!(text, "{WRAPPED}\n| defect | seeds | fell |\n|---|---|---|\n");
    for bug in BUGS {
        let (seeds, fell) = cells(*bug, kept.wrapped.get(&bug.name()));
        let _ = writeln!(text, "| `{}` | {seeds} | {fell} |", bug.name());
    }
    let _ = write!(
        text,
        "{OF_STORES}\n[The validation](../../testdata/store-defects.txt) fails with the defect and passes without it, on the store: a test \
         of [PostgreSQL](../../crates/postgres/tests/it/defects.rs) and one of [Cosmos \
         DB](../../crates/cosmos/tests/it/defects.rs) run it both ways. A defect of a function of the PostgreSQL server has its place where \
         the wrong part of the function stands.\n\n| defect | family | place | wrong behaviour | validation |\n|---|---|---|---|---|\n"
    );
    for defect in Defect::ALL.iter().filter(|defect| is_of_stores(**defect)) {
        let (family, behaviour, place) = (defect.family(), defect.text().trim(), place(*defect));
        let validation = by_validation(*defect).unwrap_or("none");
        let _ = writeln!(text, "| `{defect:?}` | {family} | `{place}` | {behaviour} | `{validation}` |");
    }
    text
}

/// Whether validations must find the defect, on a store of a server.
fn is_of_stores(defect: Defect) -> bool {
    matches!(defect.judge(), Judge::Postgres | Judge::Cosmos)
}

/// The validation that fails with a defect of a store.
fn by_validation(defect: Defect) -> Option<&'static str> {
    let name = format!("{defect:?} ");
    STORES.lines().find_map(|line| line.strip_prefix(&name))
}

/// The part of a cell before the figures of sequences.
fn first<'a>(cell: &'a str, separator: &str) -> &'a str {
    cell.split(separator).next().unwrap_or_default()
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
    if code.len() <= 3 { code } else { "no invariant" }
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
    use outlast_sim::shipped_bugs;

    fn page() -> String {
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals/defects.md"))
            .unwrap()
    }

    #[test]
    fn page_has_the_places_and_texts_of_the_code() {
        let page = page();
        let expected = text(&[], &[], &Kept::of(&page));
        let different = page.lines().zip(expected.lines()).find(|(written, expected)| written != expected);
        assert_eq!(
            different, None,
            "`cargo xtask sim --score 0..2000 --defects 1..2 --page docs/internals/defects.md` writes them"
        );
        assert_eq!(page, expected);
    }

    #[test]
    fn every_defect_of_the_page_names_the_invariant_that_fell() {
        let (page, checks) = (page(), include_str!("check/mod.rs"));
        let (shipped, wrapped) = tables(&page);
        let is_named =
            |fell: &str| !fell.is_empty() && checks.contains(&format!("//! | {} | ", first(fell, "; ")));
        let of_worlds = rows(shipped).into_iter().filter(|(_, (seeds, _))| !seeds.starts_with('–'));
        let unnamed: Vec<_> =
            of_worlds.chain(rows(wrapped)).filter(|(_, (_, fell))| !is_named(fell)).collect();
        assert_eq!(unnamed, []);
    }

    #[test]
    fn defects_that_were_not_scored_keep_their_cells() {
        let bugs = shipped_bugs();
        let all: Vec<Found> = bugs.iter().map(|bug| (*bug, 7, "I3: twice".to_string())).collect();
        let first = text(&bugs, &all, &Kept::of(""));
        let one: Found = (bugs[1], 9, "I5: lost".to_string());
        let second = text(&bugs[1..3], &[one], &Kept::of(&first));
        let cells = |at: usize| Kept::of(&second).shipped[&bugs[at].name().replace("shipped-", "")].clone();
        assert_eq!(cells(0), ("7".to_string(), "I3".to_string()), "not scored");
        assert_eq!(cells(1), ("9".to_string(), "I5".to_string()), "found");
        assert_eq!(cells(2), ("not found".to_string(), String::new()), "scored and not found");
    }

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
    fn every_shipped_defect_is_found_by_its_judge() {
        for defect in Defect::ALL {
            let found = [
                shipped_bugs().contains(&Bug::Shipped(*defect)),
                by_sequences(*defect).is_some(),
                by_validation(*defect).is_some(),
            ];
            let judge = match defect.judge() {
                Judge::Worlds => [true, false, false],
                Judge::Sequences => [false, true, false],
                Judge::SequencesAndWorlds => [true, true, false],
                Judge::Postgres | Judge::Cosmos => [false, false, true],
            };
            assert_eq!(found, judge, "{defect:?}");
        }
    }
}
