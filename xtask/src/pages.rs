//! `cargo xtask pages`: writes the parts of pages that are copied from source files.
//!
//! A part starts with a comment that names its source, and ends with `<!-- end -->`:
//! `<!-- code: PATH#NAME -->` shows the lines of a source file between `// guide: NAME` and `// guide: end`, or one of their steps, between
//! `// step: NAME` and the next mark,
//! `<!-- methods: TRAIT -->` the methods of a trait of the contract, `<!-- fields: TYPE -->` the fields of a type of it,
//! and `<!-- figures: NAME -->` the recorded figures of an attempt to break the promises.

mod code;
mod contract;

use std::process::ExitCode;

use outlast_prove::{FOLDER, show};
use outlast_toolkit::{files, process};

use crate::metadata::code::{Hashes, of_working_tree};

const END: &str = "<!-- end -->";

/// A part without a source, and the line of its comment.
#[derive(Debug, PartialEq)]
pub(crate) struct Mistake {
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// The files that parts are taken from, with their paths.
pub(crate) type Sources<'a> = &'a [(&'a str, &'a str)];

/// Writes every page with a part that differs from its source.
pub(crate) fn run() -> Result<ExitCode, String> {
    let root = process::root();
    let mut files = Vec::new();
    for path in process::files()?.into_iter().filter(|path| is_source(path) || path.ends_with(".md")) {
        if let Ok(text) = std::fs::read_to_string(root.join(&path)) {
            files.push((path, text));
        }
    }
    let sources: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let code = of_working_tree()?;
    for (path, text) in sources.iter().filter(|(path, _)| path.ends_with(".md")) {
        let filled = filled(text, &sources, &code)
            .map_err(|mistake| format!("{path}:{}: {}", mistake.line, mistake.message))?;
        if filled != *text {
            files::write(&root.join(path), &filled)?;
            println!("{path}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether parts of pages may be taken from this file.
pub(crate) fn is_source(path: &str) -> bool {
    path.ends_with(".rs") || path.starts_with(FOLDER)
}

/// The page with the current text of every part. `code` is the shipped code, which recorded figures are compared with.
pub(crate) fn filled(page: &str, sources: Sources<'_>, code: &Hashes) -> Result<String, Mistake> {
    let mut out = String::new();
    let mut lines = page.lines().zip(1..);
    while let Some((comment, line)) = lines.next() {
        out = out + comment + "\n";
        let Some((kind, source)) = part_comment(comment) else { continue };
        let text = part(kind, source, sources, code).map_err(|message| Mistake { line, message })?;
        out = out + &text + END + "\n";
        if !lines.any(|(line, _)| line.trim() == END) {
            return Err(Mistake { line, message: format!("`{comment}` is not followed by `{END}`") });
        }
    }
    Ok(out)
}

/// The parts of a page: their kinds and their sources.
pub(crate) fn parts(page: &str) -> Vec<(&str, &str)> {
    page.lines().filter_map(part_comment).collect()
}

/// The page without its parts.
pub(crate) fn written(page: &str) -> String {
    let mut is_part = false;
    let lines = page.lines().filter(|line| {
        is_part |= part_comment(line).is_some();
        let is_shown = !is_part;
        is_part &= line.trim() != END;
        is_shown
    });
    lines.map(|line| format!("{line}\n")).collect()
}

pub(crate) use code::marked;
pub(crate) use contract::{Method, described_types, trait_methods};

fn part_comment(line: &str) -> Option<(&str, &str)> {
    let comment = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    comment.split_once(": ").filter(|(kind, _)| matches!(*kind, "code" | "methods" | "fields" | "figures"))
}

/// The current text of a part, from its source.
fn part(kind: &str, source: &str, sources: Sources<'_>, code: &Hashes) -> Result<String, String> {
    match kind {
        "code" => code::show(source, sources),
        "figures" => show(source, sources, code),
        "methods" => contract::show_methods(source, sources),
        _ => contract::show_fields(source, sources),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: (&str, &str) = ("a.rs", "fn a() {}\n    // guide: b\n    fn b() {}\n    // guide: end\n");

    #[test]
    fn a_part_is_replaced_and_the_rest_stays() {
        let page = "before\n<!-- code: a.rs#b -->\nold\n<!-- end -->\nafter <!-- end -->\n";
        let expected =
            "before\n<!-- code: a.rs#b -->\n```rust\nfn b() {}\n```\n<!-- end -->\nafter <!-- end -->\n";
        assert_eq!(filled(page, &[SOURCE], &Hashes::new()).unwrap(), expected);
        assert_eq!(
            filled(expected, &[SOURCE], &Hashes::new()).unwrap(),
            expected,
            "the second call changes nothing"
        );
        assert_eq!(written(expected), "before\nafter <!-- end -->\n");
    }

    #[test]
    fn a_part_without_a_source_or_an_end_is_a_mistake() {
        for page in
            ["x\n<!-- code: a.rs#c -->\n<!-- end -->", "x\n<!-- code: a.rs#b -->\n", "x\n<!-- fields: A -->"]
        {
            assert_eq!(filled(page, &[SOURCE], &Hashes::new()).unwrap_err().line, 2, "{page}");
        }
    }
}
