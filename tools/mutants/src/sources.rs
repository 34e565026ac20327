//! The source of tests: an outcome counts as long as the test that noticed the mutant is the same.

use std::collections::BTreeMap;
use std::fs;

use super::listed::fingerprint;
use outlast_toolkit::process;

/// Fingerprints of the functions of the workspace, by name. Functions of one name share a fingerprint.
#[derive(Default)]
pub(super) struct Sources {
    by_name: BTreeMap<String, u64>,
}

impl Sources {
    /// Reads all Rust files of the workspace.
    pub(super) fn read() -> Result<Self, String> {
        let mut sources = Self::default();
        for file in process::files()?.iter().filter(|file| file.ends_with(".rs")) {
            // A file that was deleted is listed until its deletion is committed.
            if let Ok(text) = fs::read_to_string(process::root().join(file)) {
                sources.add(&text);
            }
        }
        Ok(sources)
    }

    /// Adds the functions of a file.
    pub(super) fn add(&mut self, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let Some(name) = function(line) else { continue };
            // In formatted code a function ends with the first brace at its own indentation.
            let indent = line.len() - line.trim_start().len();
            let end =
                lines[at..].iter().position(|line| line.len() == indent + 1 && line.trim_start() == "}");
            let body = lines[at..].iter().take(end.unwrap_or(0) + 1).copied().collect::<Vec<_>>().join("\n");
            let sum = self.by_name.entry(name.to_string()).or_default();
            *sum = sum.wrapping_add(fingerprint(&body));
        }
    }

    /// The fingerprint of a test, from its path in the output of the test program. 0 if a macro made the test.
    pub(super) fn of(&self, test: &str) -> u64 {
        let name = test.rsplit("::").next().unwrap_or(test);
        self.by_name.get(name).copied().unwrap_or(0)
    }
}

/// The name of the function that begins in this line.
fn function(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let is_declared = before.split_whitespace().all(|word| {
        matches!(word, "pub" | "async" | "const" | "pub(crate)" | "pub(super)" | "pub(in" | "crate)")
    });
    let end = after.find(|char: char| !char.is_alphanumeric() && char != '_')?;
    (is_declared && end > 0).then(|| &after[..end])
}

/// The path of the test in a line of libtest: `test a::b ... FAILED`.
pub(super) fn named(line: &str) -> Option<&str> {
    let (test, _) = line.strip_prefix("test ")?.split_once(" ...")?;
    test.split(" - ").next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(text: &str) -> Sources {
        let mut sources = Sources::default();
        sources.add(text);
        sources
    }

    #[test]
    fn a_test_is_the_same_until_its_function_changes() {
        let text = "mod tests {\n    #[test]\n    fn one() {\n        assert!(true);\n    }\n\n    async fn other() {}\n}\n";
        let before = sources(text).of("a::tests::one");
        assert_ne!(before, 0);
        assert_eq!(sources(&format!("// New.\n{text}")).of("a::tests::one"), before);
        assert_eq!(sources(&text.replace("other() {}", "other() { 1 }")).of("a::tests::one"), before);
        assert_ne!(sources(&text.replace("true", "1 == 1")).of("a::tests::one"), before);
        assert_eq!(sources(text).of("a::tests::made_by_a_macro"), 0);
    }

    #[test]
    fn tests_are_named_by_the_lines_of_the_test_program() {
        assert_eq!(named("test a::b ... FAILED"), Some("a::b"));
        assert_eq!(named("test a::b - should panic ... FAILED"), Some("a::b"));
        assert_eq!(named("exit status: 101"), None);
    }
}
