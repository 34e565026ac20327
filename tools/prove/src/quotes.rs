//! Figures of the scoreboard in other pages: `100,000<!-- score: sim.seeds --> worlds`.

use outlast_packages::code::Hashes;
use serde_json::Value;

use crate::board;
use crate::record::Change;

/// The start of the comment that names a figure by its row and its keys.
const OPEN: &str = "<!-- score:";

/// A number before one of these words is a figure of the scoreboard.
const COUNTED: [&str; 6] = [" worlds", " seeds", " killed processes", " kills", " power cuts", " mutants"];

/// The mistakes in a line: figures without a name, figures that differ from the record, and figures of a row whose shipped code
/// has changed since, which are of an uncommitted tree, or of which an attempt failed. `files` are pairs of a path and a text.
pub fn mistakes(line: &str, files: &[(&str, &str)], code: &Hashes) -> Vec<String> {
    let named = line.match_indices(OPEN).filter_map(|(at, _)| {
        let name = line[at + OPEN.len()..].split("-->").next().unwrap_or_default().trim();
        match figure(name, files, code) {
            Err(message) => Some(message),
            Ok(figure) => {
                let shown = board::shown(&figure);
                (number_before(&line[..at]) != shown).then(|| format!("`{name}` is {shown}"))
            }
        }
    });
    let words = COUNTED.iter().flat_map(|word| line.match_indices(word));
    let unnamed = words.filter(|(at, _)| !number_before(&line[..*at]).is_empty()).map(|(_, word)| {
        format!("a number of{word} goes stale: name it, as in `7{OPEN} sim.seeds -->{word}`, or leave it out")
    });
    named.chain(unnamed).collect()
}

/// The figure that a name of the form `ROW.KEY` stands for.
fn figure(name: &str, files: &[(&str, &str)], code: &Hashes) -> Result<Value, String> {
    let (row, key) =
        name.split_once('.').ok_or_else(|| format!("`{name}` is not of the form `ROW.FIGURE`"))?;
    let record = board::find(row, files)?
        .ok_or_else(|| format!("`{row}` was not reached: there is no `{}{row}.json`", board::FOLDER))?;
    match record.change(row, code) {
        Change::No => {}
        change => {
            return Err(format!(
                "the shipped code of `{row}` has changed since its figures were recorded: {change}. Repeat the job with \
                 `cargo xtask prove --only {row}`, or state it without the figure"
            ));
        }
    }
    if record.stamp.dirty {
        return Err(format!(
            "the figures of `{row}` are of a working tree with uncommitted changes: commit, delete the record and repeat the job"
        ));
    }
    if let Some(failure) = record.failures.last() {
        return Err(format!(
            "an attempt of `{row}` failed on this code: `{}`. State no figure of it before its cause is mended",
            failure.command
        ));
    }
    let figures = Value::Object(record.figures);
    let found = key.split('.').try_fold(&figures, |figures, key| figures.get(key));
    found.cloned().ok_or_else(|| format!("the row `{row}` has no figure `{key}`"))
}

/// The digits, commas and points that a text ends with.
fn number_before(text: &str) -> &str {
    let is_part = |char: char| char.is_ascii_digit() || matches!(char, ',' | '.');
    text[text.trim_end_matches(is_part).len()..].trim_matches([',', '.'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;
    use crate::record::tests::{code, failure, record};

    fn found_in(record: &Record, line: &str, hash: &str) -> Vec<String> {
        let text = serde_json::to_string(record).unwrap();
        mistakes(line, &[("testdata/scoreboard/sim.json", &text)], &code(hash))
    }

    fn found(line: &str, hash: &str) -> Vec<String> {
        found_in(&record("sim", "1", 300_000), line, hash)
    }

    #[test]
    fn a_named_figure_equals_its_record() {
        assert_eq!(found("ran 300,000<!-- score: sim.seeds --> worlds", "1"), [""; 0]);
        assert_eq!(found("ran 300,001<!-- score: sim.seeds --> worlds", "1"), ["`sim.seeds` is 300,000"]);
        assert_eq!(found("<!-- score: sim.seeds --> worlds", "1").len(), 1);
        assert!(found("7<!-- score: sim.turns -->", "1")[0].contains("no figure `turns`"));
        assert!(found("7<!-- score: gone.seeds -->", "1")[0].contains("scoreboard/gone.json"));
        assert!(found("7<!-- score: sim -->", "1")[0].contains("ROW.FIGURE"));
    }

    #[test]
    fn a_figure_of_a_stale_row_is_refused() {
        let stale = found("ran 300,000<!-- score: sim.seeds --> worlds", "2");
        assert!(stale.len() == 1 && stale[0].contains("has changed since"), "{stale:?}");
    }

    #[test]
    fn figures_of_a_dirty_tree_or_with_a_failed_chunk_are_refused() {
        let quote = "ran 300,000<!-- score: sim.seeds --> worlds";
        let mut record = record("sim", "1", 300_000);
        record.stamp.dirty = true;
        let dirty = found_in(&record, quote, "1");
        assert!(dirty.len() == 1 && dirty[0].contains("uncommitted changes"), "{dirty:?}");
        record.stamp.dirty = false;
        record.failures.push(failure());
        let failed = found_in(&record, quote, "1");
        assert!(
            failed.len() == 1 && failed[0].contains("failed on this code: `cargo xtask sim"),
            "{failed:?}"
        );
    }

    #[test]
    fn a_figure_without_a_name_is_refused() {
        let unnamed = found("among them 100,000 worlds, killed processes and 6,000 power cuts", "1");
        assert_eq!(unnamed.len(), 2, "{unnamed:?}");
        assert_eq!(found("2,000 [simulated worlds](x), and seeds, kills and worlds", "1"), [""; 0]);
    }
}
