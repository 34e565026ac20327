//! A count in a document agrees with the source.
//!
//! A document writes the count, then a comment that names it: `369<!-- count: validations --> validations`. A renderer
//! hides the comment. [`source_counts`] lists the names.

use std::collections::{BTreeMap, BTreeSet};

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

/// The start of the comment that names a count.
const OPEN: &str = "<!-- count:";
/// The category that only exists with the feature `runtime`.
const NEEDS_RUNTIME: &str = "race_replay";
/// The first category that the older contract does not have.
const FIRST_ADDED: &str = "orphans";

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
fn named(line: &str, source_counts: &BTreeMap<&str, usize>) -> impl Iterator<Item = String> {
    line.match_indices(OPEN).filter_map(|(at, _)| {
        let name = line[at + OPEN.len()..].split("-->").next().unwrap_or_default().trim();
        let Some(count) = source_counts.get(name) else {
            let known: Vec<&str> = source_counts.keys().copied().collect();
            return Some(format!("nothing is counted as `{name}`; known are {}", known.join(", ")));
        };
        (number_before(&line[..at]) != Some(*count)).then(|| format!("the count of {name} is {count}"))
    })
}

/// Counts that have no comment with their name.
fn unnamed(file: &File, line: &str) -> impl Iterator<Item = String> {
    let counted = COUNTED.iter().filter(|_| !HISTORY.contains(&file.path.as_str()));
    let is_count = |before: &str| before.ends_with(' ') && number_before(before.trim_end()).is_some();
    let words = counted.flat_map(|word| line.match_indices(word));
    words.filter(move |(at, _)| is_count(&line[..*at])).map(|(_, word)| {
        format!("a count of {word} goes stale: name it, as in `7{OPEN} {word} --> {word}`, or leave it out")
    })
}

/// A row of the guide's table of categories that has another number of validations than the category.
fn row(file: &File, line: &str, catalogue: &[Category<'_>]) -> Option<String> {
    let (name, rest) = line.strip_prefix("| `").filter(|_| file.path == GUIDE)?.split_once("` | ")?;
    let written: usize = rest.split(" |").next()?.parse().ok()?;
    let count = total(catalogue, |category| category.name == name);
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
    let lines = (1..).zip(page.text.lines()).skip_while(|(_, line)| *line != "## What tidy refuses").skip(1);
    let rows = lines
        .take_while(|(_, line)| !line.starts_with("## "))
        .filter_map(|(line, text)| Some((line, text.strip_prefix("| `")?.split('`').next()?)));
    let mut names: BTreeSet<&str> = crate::tidy::RULES.iter().map(|rule| rule.name).collect();
    let strange = rows.filter(|(_, row)| !names.remove(row));
    let mut findings: Vec<Finding> =
        strange.map(|(line, row)| page.finding(line, format!("tidy has no rule `{row}`"))).collect();
    let missing = names.into_iter().map(|name| format!("`What tidy refuses` has no row for `{name}`"));
    findings.extend(missing.map(|message| page.finding(1, message)));
    findings
}

/// The counts of the source, by name.
fn source_counts(repo: &Repo) -> BTreeMap<&'static str, usize> {
    let text = |path: &str| repo.file(path).map_or("", |file| &file.text);
    let catalogue = catalogue(text(CATALOGUE));
    let published = total(&catalogue, |category| category.is_published);
    let all = total(&catalogue, |_| true);
    let [waits, hooks, pending] =
        ["Waits", "QueueHooks", "Pending"].map(|need| needing(text(CATALOGUE), &catalogue, need));
    // Rows of the form `Name = "where it was seen",`; the place is empty for a defect that no program had.
    let defects = between(text(DEFECTS), "\ndefects! {", "\n}").lines().map(str::trim);
    let defects: Vec<&str> = defects.filter(|line| line.contains(" = \"") && line.ends_with("\",")).collect();
    let migrations = repo.with_extension("sql").filter(|file| file.path.starts_with(MIGRATIONS));
    let created: Vec<&str> = migrations.flat_map(|file| file.text.lines()).collect();
    let created = |kind: &str| {
        let starts = [format!("CREATE {kind} "), format!("CREATE OR REPLACE {kind} ")];
        created.iter().filter(|line| starts.iter().any(|start| line.trim_start().starts_with(start))).count()
    };
    let models = repo.with_extension("rs").filter(|file| file.path.starts_with(MODELS));
    let is_variant = |line: &&str| line.trim().starts_with(|char: char| char.is_ascii_uppercase());
    let variants = |file: &File| between(&file.text, "enum Bug {", "\n}").lines().filter(is_variant).count();
    let simulated = between(text(SIMULATED), "const BUGS", "];").lines();
    BTreeMap::from([
        ("validations", all),
        ("published validations", published),
        ("added validations", all - published),
        ("validations without a runtime", total(&catalogue, |category| category.name != NEEDS_RUNTIME)),
        ("categories", catalogue.len()),
        ("categories without a runtime", catalogue.iter().filter(|c| c.name != NEEDS_RUNTIME).count()),
        ("validations that wait", waits),
        ("validations with queue hooks", hooks),
        ("validations that show pending work", pending),
        ("validations with needs", waits + hooks + pending),
        ("seeded defects", defects.len()),
        ("seeded defects that happened", defects.iter().filter(|line| !line.ends_with(" = \"\",")).count()),
        ("simulated defects", simulated.filter(|line| line.trim().starts_with("Bug::")).count()),
        ("modelled bugs", models.map(variants).sum()),
        ("SQL functions", created("FUNCTION")),
        ("tables", created("TABLE")),
        ("tidy rules", crate::tidy::RULES.len()),
    ])
}

struct Category<'a> {
    name: &'a str,
    is_published: bool,
    validations: usize,
}

/// Lines of the form `category: [first, second],`.
fn catalogue(text: &str) -> Vec<Category<'_>> {
    let mut is_published = true;
    let rows = text.lines().filter_map(|line| line.trim().strip_suffix("],")?.split_once(": ["));
    let is_name = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_';
    rows.filter(|(name, _)| name.chars().all(is_name))
        .map(|(name, names)| {
            is_published &= name != FIRST_ADDED;
            let validations = names.split(", ").filter(|name| name.chars().all(is_name)).count();
            Category { name, is_published: is_published || name == NEEDS_RUNTIME, validations }
        })
        .collect()
}

fn total(catalogue: &[Category<'_>], is_counted: impl Fn(&Category<'_>) -> bool) -> usize {
    catalogue.iter().filter(|category| is_counted(category)).map(|category| category.validations).sum()
}

/// The validations that do not apply to every store, from the arms of `fn needs` that end in this need.
fn needing(text: &str, catalogue: &[Category<'_>], need: &str) -> usize {
    let parts: Vec<&str> = between(text, "fn needs(", "\n}").split("=> Needs::").collect();
    let arms = parts.windows(2).filter(|pair| pair[1].starts_with(need));
    let count = |pattern: &str| match pattern.split('"').skip(1).step_by(2).collect::<Vec<_>>()[..] {
        // `(category, _)`: all of it.
        [name] => total(catalogue, |category| category.name == name),
        ref names => names.len().saturating_sub(1),
    };
    arms.map(|pair| count(pair[0])).sum()
}

/// The text between two texts, or nothing.
fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    text.split_once(start).and_then(|(_, rest)| rest.split(end).next()).unwrap_or_default()
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
