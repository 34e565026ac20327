//! Lines of a source file, between two marks.

use super::Sources;

const MARK: &str = "// guide: ";
const END: &str = "end";

/// The marked lines as a code block. `source` is `PATH#NAME`.
pub(super) fn show(source: &str, sources: Sources<'_>) -> Result<String, String> {
    let (path, name) = source.split_once('#').ok_or_else(|| format!("`{source}` is not `PATH#NAME`"))?;
    let (_, text) =
        sources.iter().find(|(file, _)| *file == path).ok_or_else(|| format!("there is no `{path}`"))?;
    let lines = between_marks(text, name).ok_or_else(|| {
        format!("`{path}` has no line `{MARK}{name}` that is followed by a line `{MARK}{END}`")
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
        text.lines().zip(1..).filter_map(|(line, number)| Some((number, line.trim().strip_prefix(MARK)?)));
    marks.filter(|(_, name)| *name != END).collect()
}

/// The lines between the mark with this name and the next mark.
fn between_marks<'a>(text: &'a str, name: &str) -> Option<Vec<&'a str>> {
    let start = text.lines().position(|line| line.trim().strip_prefix(MARK) == Some(name))?;
    let lines: Vec<&str> = text.lines().skip(start + 1).collect();
    let end = lines.iter().position(|line| line.trim().starts_with(MARK))?;
    Some(lines[..end].to_vec())
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
    fn a_mark_that_is_missing_or_has_no_end_is_an_error() {
        let sources = [("f", "// guide: a\nx")];
        assert!(show("f#a", &sources).unwrap_err().contains("guide: end"));
        assert!(show("f#b", &sources).unwrap_err().contains("guide: b"));
        assert!(show("g#a", &sources).unwrap_err().contains("no `g`"));
    }
}
