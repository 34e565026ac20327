//! `cargo xtask pages`: parts of pages that are taken from source files, so that they cannot go stale.
//!
//! A part begins with a comment that says what it shows, and ends with `<!-- end -->`:
//! `<!-- code: PATH#NAME -->` shows the lines of a source file between `// guide: NAME` and `// guide: end`,
//! `<!-- methods: TRAIT -->` the methods of a trait of the contract, and `<!-- fields: TYPE -->` the fields of a type of it.

mod code;
mod contract;

use std::process::ExitCode;

use crate::process;

const END: &str = "<!-- end -->";

/// A part that cannot be filled, and the line that asks for it.
#[derive(Debug, PartialEq)]
pub(crate) struct Mistake {
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// The files that parts are taken from, with their paths.
pub(crate) type Sources<'a> = &'a [(&'a str, &'a str)];

pub(crate) fn details() -> String {
    "Writes the parts of every page that are taken from source files: code, methods and fields. `cargo xtask tidy` says\n\
     which pages are out of date.\n"
        .to_string()
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode, String> {
    if let Some(arg) = args.first() {
        return Err(format!("pages: unknown argument `{arg}`"));
    }
    let root = process::root();
    let mut files = Vec::new();
    for path in process::files()?.into_iter().filter(|path| path.ends_with(".rs") || path.ends_with(".md")) {
        if let Ok(text) = std::fs::read_to_string(root.join(&path)) {
            files.push((path, text));
        }
    }
    let sources: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    for (path, text) in sources.iter().filter(|(path, _)| path.ends_with(".md")) {
        let filled = filled(text, &sources)
            .map_err(|mistake| format!("{path}:{}: {}", mistake.line, mistake.message))?;
        if filled != *text {
            std::fs::write(root.join(path), filled).map_err(|error| format!("{path}: {error}"))?;
            println!("{path}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The page with every part as its source has it now.
pub(crate) fn filled(page: &str, sources: Sources<'_>) -> Result<String, Mistake> {
    let mut out = String::new();
    let mut lines = page.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        out.push_str(line);
        out.push('\n');
        let Some((kind, what)) = asked(line) else { continue };
        let mistake = |message: String| Mistake { line: number, message };
        out.push_str(&part(kind, what, sources).map_err(mistake)?);
        if !lines.any(|(line, _)| line.trim() == END) {
            return Err(mistake(format!("`{}` has no `{END}` behind it", line.trim())));
        }
        out.push_str(END);
        out.push('\n');
    }
    Ok(out)
}

/// The parts that a page asks for: their kind and what they show.
pub(crate) fn parts(page: &str) -> Vec<(&str, &str)> {
    page.lines().filter_map(asked).collect()
}

/// The page without its parts: what people wrote.
pub(crate) fn written(page: &str) -> String {
    let mut lines = page.lines();
    let mut out = String::new();
    while let Some(line) = lines.next() {
        match asked(line) {
            Some(_) => drop(lines.find(|line| line.trim() == END)),
            None => out = out + line + "\n",
        }
    }
    out
}

pub(crate) use code::marked;
pub(crate) use contract::{described_types, trait_methods};

fn asked(line: &str) -> Option<(&str, &str)> {
    let comment = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    comment.split_once(": ").filter(|(kind, _)| matches!(*kind, "code" | "methods" | "fields"))
}

fn part(kind: &str, what: &str, sources: Sources<'_>) -> Result<String, String> {
    match kind {
        "code" => code::show(what, sources),
        "methods" => contract::show_methods(what, sources),
        _ => contract::show_fields(what, sources),
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
        assert_eq!(filled(page, &[SOURCE]).unwrap(), expected);
        assert_eq!(filled(expected, &[SOURCE]).unwrap(), expected, "twice is once");
        assert_eq!(written(expected), "before\nafter <!-- end -->\n");
    }

    #[test]
    fn a_part_without_a_source_or_an_end_is_a_mistake() {
        for page in
            ["x\n<!-- code: a.rs#c -->\n<!-- end -->", "x\n<!-- code: a.rs#b -->\n", "x\n<!-- fields: A -->"]
        {
            assert_eq!(filled(page, &[SOURCE]).unwrap_err().line, 2, "{page}");
        }
    }
}
