//! Notes about large files and long functions. They are no findings.

use super::repo::Repo;
use super::source::Source;
use super::test_code::item_end;

const SHOWN: usize = 10;
const FILE_LINES: usize = 300;
const FUNCTION_LINES: usize = 60;

pub(super) fn notes(repo: &Repo) -> Vec<String> {
    let mut files = Vec::new();
    let mut functions = Vec::new();
    for (file, source) in repo.rust() {
        let lines = file.text.lines().count();
        files.push((lines, format!("{}: {lines} lines", file.path)));
        for (name, line, length) in lengths(source) {
            functions.push((length, format!("{}:{line}: `{name}` has {length} lines", file.path)));
        }
    }
    let mut notes = largest(files, FILE_LINES);
    notes.extend(largest(functions, FUNCTION_LINES));
    notes
}

fn largest(mut all: Vec<(usize, String)>, limit: usize) -> Vec<String> {
    all.retain(|(size, _)| *size > limit);
    all.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    all.into_iter().take(SHOWN).map(|(_, note)| note).collect()
}

/// Name, first line and number of lines of every function.
fn lengths(source: &Source) -> Vec<(String, usize, usize)> {
    let mut found = Vec::new();
    for at in source.find("fn") {
        let name: String = source.code[at + 2..]
            .trim_start()
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        // A function pointer has no name.
        if !name.is_empty() {
            let line = source.line(at);
            let end = item_end(&source.code, at);
            found.push((name, line, source.line(end - 1) - line + 1));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_functions_are_counted() {
        let code = "fn a(x: fn(u8)) -> [u8; 2] {\n  if x {\n    // }\n  }\n}\ntrait T {\n  fn b(\n  );\n}\n";
        let found = lengths(&Source::parse(code));
        assert_eq!(found, [("a".to_string(), 1, 5), ("b".to_string(), 7, 2)]);
    }

    #[test]
    fn the_largest_come_first_and_only_ten() {
        let long = |lines: usize| format!("fn f() {{\n{}}}\n", "\n".repeat(lines));
        let texts: Vec<(String, String)> =
            (0..12).map(|n| (format!("src/{n:02}.rs"), long(300 + n))).collect();
        let files: Vec<(&str, &str)> =
            texts.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let notes = notes(&Repo::of(&files));
        assert_eq!(notes.len(), 20);
        assert_eq!(notes[0], "src/11.rs: 313 lines");
        assert_eq!(notes[10], "src/11.rs:1: `f` has 313 lines");
        assert_eq!(super::notes(&Repo::of(&[("a.rs", "fn f() {}")])), Vec::<String>::new());
    }
}
