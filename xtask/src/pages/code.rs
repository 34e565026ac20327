//! Lines of a source file, between two marks.

use super::Sources;

const MARK: &str = "// guide: ";
/// A step of the marked lines. It ends with the next mark of either kind.
const STEP: &str = "// step: ";
const END: &str = "end";

/// The marked lines as a code block. `source` is `PATH#NAME`.
pub(super) fn show(source: &str, sources: Sources<'_>) -> Result<String, String> {
    let (path, name) = source.split_once('#').ok_or_else(|| format!("`{source}` is not `PATH#NAME`"))?;
    let (_, text) =
        sources.iter().find(|(file, _)| *file == path).ok_or_else(|| format!("there is no `{path}`"))?;
    let lines = between_marks(text, name).ok_or_else(|| {
        format!(
            "`{path}` has no line `{MARK}{name}` or `{STEP}{name}` that is followed by a line `{MARK}{END}`"
        )
    })?;
    let indent = lines.iter().filter(|line| !line.trim().is_empty());
    let indent = indent.map(|line| line.len() - line.trim_start().len()).min();
    let cut = |line: &str| line.get(indent.unwrap_or(0)..).unwrap_or_default().to_string();
    let lines: Vec<String> = lines.into_iter().map(cut).collect();
    Ok(format!("```rust\n{}\n```\n", lines.join("\n").trim_matches('\n')))
}

/// The names that a file marks.
pub(crate) fn marked(text: &str) -> Vec<(usize, &str)> {
    let marks =
        text.lines().zip(1..).filter_map(|(line, number)| Some((number, name_after(line, &[MARK, STEP])?)));
    marks.filter(|(_, name)| *name != END).collect()
}

/// The name in a line with one of these marks.
fn name_after<'a>(line: &'a str, marks: &[&str]) -> Option<&'a str> {
    marks.iter().find_map(|mark| line.trim().strip_prefix(mark))
}

/// The lines between the mark with this name and the next mark of its kind, without the marks of steps. A step ends with its program.
fn between_marks<'a>(text: &'a str, name: &str) -> Option<Vec<&'a str>> {
    let begins = |line: &str| name_after(line, &[MARK, STEP]) == Some(name);
    let start = text.lines().position(begins)?;
    let ends: &[&str] = match name_after(text.lines().nth(start)?, &[MARK]) {
        Some(_) => &[MARK],
        None => &[MARK, STEP],
    };
    let lines: Vec<&str> = text.lines().skip(start + 1).collect();
    let end = lines.iter().position(|line| name_after(line, ends).is_some())?;
    Some(lines[..end].iter().copied().filter(|line| name_after(line, &[STEP]).is_none()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_lines_lose_their_common_indentation() {
        let text = "x\n  // guide: a\n  if b {\n\n    c\n  }\n  // guide: end\ny";
        assert_eq!(show("f#a", &[("f", text)]).unwrap(), "```rust\nif b {\n\n  c\n}\n```\n");
        assert_eq!(marked(text), [(2, "a")]);
    }

    #[test]
    fn a_program_is_shown_whole_without_its_marks_and_each_step_alone() {
        let text = "// guide: all\na\n// step: one\nfn b() {\n    // step: two\n    c\n}\n// guide: end\nd";
        let shown = |name: &str| show(&format!("f#{name}"), &[("f", text)]).unwrap();
        assert_eq!(shown("all"), "```rust\na\nfn b() {\n    c\n}\n```\n");
        assert_eq!(shown("one"), "```rust\nfn b() {\n```\n");
        assert_eq!(shown("two"), "```rust\n    c\n}\n```\n");
        assert_eq!(marked(text), [(1, "all"), (3, "one"), (5, "two")]);
    }

    #[test]
    fn a_mark_that_is_missing_or_has_no_end_is_an_error() {
        let sources = [("f", "// guide: a\nx")];
        assert!(show("f#a", &sources).unwrap_err().contains("guide: end"));
        assert!(show("f#b", &sources).unwrap_err().contains("guide: b"));
        assert!(show("g#a", &sources).unwrap_err().contains("no `g`"));
    }
}
