//! Notes about large files and long functions. They are no findings.

use super::repo::Repo;

const SHOWN: usize = 10;
const FILE_LINES: usize = 300;
const FUNCTION_LINES: usize = 60;

/// The largest files and the longest functions above the limits, one line each.
pub(super) fn notes(repo: &Repo) -> Vec<String> {
    let mut files = Vec::new();
    let mut functions = Vec::new();
    for (file, source) in repo.rust() {
        let lines = file.text.lines().count();
        files.push((lines, format!("{}: {lines} lines", file.path)));
        for (name, range) in &source.functions {
            let line = source.line(range.start);
            let length = source.line(range.end - 1) - line + 1;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ten_largest_files_and_functions_come_first() {
        let long = |lines: usize| format!("fn f() {{\n{}}}\n", "\n".repeat(lines));
        let texts: Vec<(String, String)> =
            (0..12).map(|n| (format!("src/{n:02}.rs"), long(300 + n))).collect();
        let files: Vec<(&str, &str)> = texts.iter().map(|(path, text)| (&**path, &**text)).collect();
        let notes = notes(&Repo::of(&files));
        assert_eq!(notes.len(), 20);
        assert_eq!(notes[0], "src/11.rs: 313 lines");
        assert_eq!(notes[10], "src/11.rs:1: `f` has 313 lines");
        assert_eq!(super::notes(&Repo::of(&[("a.rs", "fn f() {}")])), Vec::<String>::new());
    }
}
