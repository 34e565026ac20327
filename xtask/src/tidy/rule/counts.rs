//! A count in a document agrees with the source.
//!
//! A document writes the count, then a comment that names it: `369<!-- count: validations --> validations`. A renderer
//! hides the comment. [`source_counts`] lists the names.

use std::collections::BTreeMap;

use crate::tidy::markdown;
use crate::tidy::repo::{File, Finding, Repo};

const CATALOGUE: &str = "crates/conformance/src/catalogue.rs";
const DEFECTS: &str = "crates/memory/src/defects.rs";
const SIMULATED: &str = "crates/sim/src/bug.rs";
const MODELS: &str = "crates/sim/tests/it/model/";
const MIGRATIONS: &str = "crates/postgres/migrations/";
const GUIDE: &str = "docs/provider-guide.md";
const CONTRIBUTING: &str = "CONTRIBUTING.md";

/// Pages about the past: their counts belong to the commits that they name.
const HISTORY: [&str; 2] = ["CHANGELOG.md", "docs/reliability.md"];

/// A number before one of these words is a count that must be named.
const COUNTED: [&str; 4] = ["validations", "seeded defects", "tidy rules", "SQL functions"];

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let source_counts = source_counts(repo);
    let catalogue = repo.file(CATALOGUE).map(|file| catalogue(&file.text)).unwrap_or_default();
    let mut findings = missing_rules(repo);
    for file in repo.with_extension("md") {
        for (line, prose) in markdown::prose(&file.text) {
            let problems =
                named(prose, &source_counts).chain(unnamed(file, prose)).chain(row(file, prose, &catalogue));
            findings.extend(problems.map(|message| file.finding(line, message)));
        }
    }
    findings
}

/// Counts that are named and wrong, or named by a name that does not exist.
fn named<'a>(
    line: &'a str,
    source_counts: &'a BTreeMap<&'static str, usize>,
) -> impl Iterator<Item = String> + 'a {
    line.match_indices(OPEN).filter_map(|(at, _)| {
        let name = line[at + OPEN.len()..].split("-->").next().unwrap_or_default().trim();
        let Some(count) = source_counts.get(name) else {
            let known: Vec<&str> = source_counts.keys().copied().collect();
            return Some(format!("nothing is counted as `{name}`; known are {}", known.join(", ")));
        };
        let written = number_before(&line[..at]);
        (written != Some(*count)).then(|| format!("the count of {name} is {count}"))
    })
}

const OPEN: &str = "<!-- count:";

/// Counts that have no comment with their name.
fn unnamed<'a>(file: &'a File, line: &'a str) -> impl Iterator<Item = String> + 'a {
    let is_history = HISTORY.contains(&file.path.as_str());
    let counted = COUNTED.iter().filter(move |_| !is_history);
    counted.flat_map(move |word| {
        let places = line.match_indices(word);
        places.filter(|(at, _)| line[..*at].ends_with(' ') && number_before(line[..*at].trim_end()).is_some()).map(
            move |_| {
                format!("a count of {word} goes stale: name it, as in `7{OPEN} {word} --> {word}`, or leave it out")
            },
        )
    })
}

/// A row of the guide's table of categories that has another number of validations than the category.
fn row(file: &File, line: &str, catalogue: &[Category<'_>]) -> Option<String> {
    let (name, rest) = line.strip_prefix("| `").filter(|_| file.path == GUIDE)?.split_once("` | ")?;
    let written: usize = rest.split(" |").next()?.parse().ok()?;
    let count = catalogue.iter().find(|category| category.name == name).map_or(0, |c| c.validations.len());
    (written != count).then(|| format!("the category {name} has {count} validations"))
}

/// The number that a text ends with.
fn number_before(text: &str) -> Option<usize> {
    let is_part = |char: char| char.is_ascii_digit() || char == ',';
    let digits = &text[text.trim_end_matches(is_part).len()..];
    digits.replace(',', "").parse().ok()
}

/// CONTRIBUTING.md has a row for each rule, and no other.
fn missing_rules(repo: &Repo) -> Vec<Finding> {
    let Some(page) = repo.file(CONTRIBUTING) else { return Vec::new() };
    let rows: Vec<(usize, &str)> = section(&page.text, "## What tidy refuses")
        .filter_map(|(line, text)| Some((line, text.strip_prefix("| `")?.split('`').next()?)))
        .collect();
    let names: Vec<&str> = crate::tidy::RULES.iter().map(|rule| rule.name).collect();
    let missing = names.iter().filter(|name| !rows.iter().any(|(_, row)| row == *name));
    let missing = missing.map(|name| page.finding(1, format!("`What tidy refuses` has no row for `{name}`")));
    let strange = rows.iter().filter(|(_, row)| !names.contains(row));
    let strange = strange.map(|(line, row)| page.finding(*line, format!("tidy has no rule `{row}`")));
    missing.chain(strange).collect()
}

/// The numbered lines between a heading and the next one.
fn section<'a>(text: &'a str, heading: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    lines
        .skip_while(move |(_, line)| *line != heading)
        .skip(1)
        .take_while(|(_, line)| !line.starts_with("## "))
}

/// The counts of the source, by name.
fn source_counts(repo: &Repo) -> BTreeMap<&'static str, usize> {
    let text = |path: &str| repo.file(path).map_or("", |file| &file.text);
    let catalogue = catalogue(text(CATALOGUE));
    let of = |published: bool| {
        let some = catalogue.iter().filter(|category| category.is_published == published);
        some.map(|category| category.validations.len()).sum::<usize>()
    };
    let runtime: usize =
        catalogue.iter().filter(|category| category.name == NEEDS_RUNTIME).map(|c| c.validations.len()).sum();
    let Needs { waits, hooks, pending } = needs(text(CATALOGUE), &catalogue);
    let defects = defects(text(DEFECTS));
    let migrations = || repo.with_extension("sql").filter(|file| file.path.starts_with(MIGRATIONS));
    let created = |kind: &str| {
        migrations().flat_map(|file| file.text.lines()).filter(|line| is_created(line, kind)).count()
    };
    let models = repo.with_extension("rs").filter(|file| file.path.starts_with(MODELS));
    BTreeMap::from([
        ("validations", of(true) + of(false)),
        ("published validations", of(true)),
        ("added validations", of(false)),
        ("validations without a runtime", of(true) + of(false) - runtime),
        ("categories", catalogue.len()),
        ("categories without a runtime", catalogue.iter().filter(|c| c.name != NEEDS_RUNTIME).count()),
        ("validations that wait", waits),
        ("validations with queue hooks", hooks),
        ("validations that show pending work", pending),
        ("validations with needs", waits + hooks + pending),
        ("seeded defects", defects.len()),
        ("seeded defects that happened", defects.iter().filter(|source| !source.is_empty()).count()),
        ("simulated defects", text(SIMULATED).lines().filter(|line| is_listed_bug(line)).count()),
        ("modelled bugs", models.map(|file| variants(&file.text, "enum Bug {")).sum()),
        ("SQL functions", created("FUNCTION")),
        ("tables", created("TABLE")),
        ("tidy rules", crate::tidy::RULES.len()),
    ])
}

/// The category that only exists with the feature `runtime`.
const NEEDS_RUNTIME: &str = "race_replay";
/// The first category that the older contract does not have.
const FIRST_ADDED: &str = "orphans";

struct Category<'a> {
    name: &'a str,
    is_published: bool,
    validations: Vec<&'a str>,
}

/// Lines of the form `category: [first, second],`.
fn catalogue(text: &str) -> Vec<Category<'_>> {
    let mut is_published = true;
    let rows = text.lines().filter_map(|line| {
        let (name, rest) = line.trim().split_once(": [")?;
        let names = rest.strip_suffix("],")?;
        let is_name =
            |name: &str| name.chars().all(|char| char.is_ascii_lowercase() || "_0123456789".contains(char));
        is_name(name).then(|| (name, names.split(", ").filter(|name| is_name(name)).collect()))
    });
    rows.map(|(name, validations)| {
        is_published &= name != FIRST_ADDED;
        Category { name, is_published: is_published || name == NEEDS_RUNTIME, validations }
    })
    .collect()
}

/// How many validations do not apply to every store, by the need that they state.
#[derive(Default)]
struct Needs {
    /// A store that waits.
    waits: usize,
    /// Hooks that damage queues.
    hooks: usize,
    /// `ProviderAdmin::pending`.
    pending: usize,
}

/// Counts the arms of `fn needs`.
fn needs(text: &str, catalogue: &[Category<'_>]) -> Needs {
    let body = text.split("fn needs(").nth(1).and_then(|rest| rest.split("\n}").next()).unwrap_or_default();
    let mut needs = Needs::default();
    let mut parts = body.split("Needs::");
    let mut pattern = parts.next().unwrap_or_default();
    for part in parts {
        let quoted: Vec<&str> = pattern.split('"').skip(1).step_by(2).collect();
        let count = match quoted.split_first() {
            // `(category, _)`: all of it.
            Some((category, [])) => {
                catalogue.iter().filter(|row| row.name == *category).map(|row| row.validations.len()).sum()
            }
            Some((_, names)) => names.len(),
            None => 0,
        };
        match part.split([',', ' ', '\n']).next() {
            Some("Waits") => needs.waits += count,
            Some("QueueHooks") => needs.hooks += count,
            Some("Pending") => needs.pending += count,
            _ => {}
        }
        pattern = part;
    }
    needs
}

/// For each row `Name = "where it was seen",` of the list, the place; empty for a defect that is made up.
fn defects(text: &str) -> Vec<&str> {
    let list = text.split("\ndefects! {").nth(1).unwrap_or_default();
    list.lines().filter_map(|line| line.trim().split_once(" = \"")?.1.strip_suffix("\",")).collect()
}

/// Whether a line of a migration begins a statement that creates or replaces an object of this kind.
fn is_created(line: &str, kind: &str) -> bool {
    let mut words = line.split_whitespace().filter(|word| !matches!(*word, "OR" | "REPLACE"));
    words.next() == Some("CREATE") && words.next() == Some(kind)
}

fn is_listed_bug(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("Bug::") && line.ends_with(',')
}

/// The number of variants of an enum with one variant per line.
fn variants(text: &str, start: &str) -> usize {
    let body = text.split(start).nth(1).and_then(|rest| rest.split("\n}").next()).unwrap_or_default();
    let is_variant = |line: &&str| line.trim().starts_with(|char: char| char.is_ascii_uppercase());
    body.lines().filter(is_variant).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::repo::printed;

    const SOURCE: &str = "
            atomicity: [test_a, test_b],
            orphans: [one, two, three],
            waiting: [four, five],
            race_replay: [test_c],
fn needs(category: &str, name: &str) -> Needs {
    match (category, name) {
        (
            \"atomicity\",
            \"test_a\" | \"test_b\",
        ) => Needs::Waits,
        (\"waiting\", _) => Needs::Waits,
        (\"orphans\", \"one\") => Needs::QueueHooks,
        _ => Needs::Nothing,
    }
}
";

    fn repo(page: &str) -> Repo {
        Repo::of(&[
            ("docs/a.md", page),
            ("CHANGELOG.md", "7 validations"),
            (CATALOGUE, SOURCE),
            (DEFECTS, "macro {\n}\ndefects! {\n    /// Doc.\n    A = \"\",\n    B = \"seen\",\n}\n"),
            ("crates/sim/tests/it/model/lease/mod.rs", "enum Bug {\n    /// Doc.\n    One,\n    Two,\n}\n"),
            ("crates/postgres/migrations/0002.sql", "CREATE FUNCTION a()\nCREATE TABLE b\n"),
        ])
    }

    fn findings(page: &str) -> Vec<String> {
        printed(check(&repo(page)))
    }

    #[test]
    fn the_source_is_counted() {
        let source_counts = source_counts(&repo(""));
        for (name, count) in [
            ("validations", 8),
            ("published validations", 3),
            ("added validations", 5),
            ("validations without a runtime", 7),
            ("categories", 4),
            ("validations that wait", 4),
            ("validations with queue hooks", 1),
            ("seeded defects", 2),
            ("seeded defects that happened", 1),
            ("modelled bugs", 2),
            ("SQL functions", 1),
            ("tables", 1),
        ] {
            assert_eq!(source_counts[name], count, "{name}");
        }
    }

    #[test]
    fn a_wrong_or_unknown_count_is_refused() {
        assert_eq!(findings("all 8<!-- count: validations --> validations"), [""; 0]);
        let wrong = findings("all 1,007<!-- count: validations --> validations");
        assert_eq!(wrong, ["docs/a.md:1: the count of validations is 8"]);
        assert!(findings("4<!-- count: teapots -->")[0].contains("nothing is counted as `teapots`"));
        assert_eq!(findings("some<!-- count: validations -->").len(), 1, "a count needs a number");
    }

    #[test]
    fn a_count_without_a_name_is_refused_except_in_history() {
        assert!(findings("all 8 validations")[0].contains("goes stale"));
        assert_eq!(findings("the validations, `8 validations` in code").len(), 1);
        assert_eq!(findings("revalidations 8\n```\n8 validations\n```"), [""; 0]);
    }

    #[test]
    fn the_table_of_categories_is_checked() {
        let page =
            "| `orphans` | 3 | x |\n| `waiting` | 3 | x |\n| `gone` | 1 | x |\n| `orphans` | text | x |";
        let found = printed(check(&Repo::of(&[(GUIDE, page), (CATALOGUE, SOURCE)])));
        let expected = ["2: the category waiting has 2", "3: the category gone has 0"];
        assert_eq!(found, expected.map(|text| format!("{GUIDE}:{text} validations")));
    }

    #[test]
    fn every_rule_has_its_row() {
        let page = "## What tidy refuses\n| `counts` | x |\n| `gone` | x |\n## Next\n| `other` | x |\n";
        let found = printed(check(&Repo::of(&[(CONTRIBUTING, page)])));
        assert!(found.contains(&"CONTRIBUTING.md:3: tidy has no rule `gone`".to_string()), "{found:?}");
        assert!(found.iter().any(|finding| finding.contains("no row for `links`")), "{found:?}");
        assert!(!found.iter().any(|finding| finding.contains("`counts`") || finding.contains("`other`")));
    }
}
