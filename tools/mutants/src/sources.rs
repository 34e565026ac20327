//! The source of tests: an outcome counts as long as the test that noticed the mutant is the same, or all tests of the target.

use std::collections::BTreeMap;
use std::fs;

use super::listed::fingerprint;
use super::target::Target;
use outlast_toolkit::process;

/// Fingerprints of the functions of the workspace, by name. Functions of one name share a fingerprint.
#[derive(Default)]
pub(super) struct Sources {
    by_name: BTreeMap<String, u64>,
    /// The Rust files, by their paths.
    files: BTreeMap<String, String>,
}

impl Sources {
    /// Reads all Rust files of the workspace.
    pub(super) fn read() -> Result<Self, String> {
        let mut sources = Self::default();
        for file in process::files()?.iter().filter(|file| file.ends_with(".rs")) {
            // A file that was deleted is listed until its deletion is committed.
            if let Ok(text) = fs::read_to_string(process::root().join(file)) {
                sources.add(&text);
                sources.files.insert(file.clone(), text);
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

    /// The fingerprint of a test, from its path in the output of the test program. `None` if a macro made the test.
    pub(super) fn of(&self, test: &str) -> Option<u64> {
        let name = test.rsplit("::").next().unwrap_or(test);
        self.by_name.get(name).copied()
    }

    /// The fingerprint of all tests of a target: the files of the tests of its packages, the test modules in their sources, and the
    /// choice of the tests that run.
    pub(super) fn of_all(&self, target: &Target) -> u64 {
        let folders = target.tested_by.iter().map(|package| Target::folder_of(package) + "/");
        let mut text =
            format!("{:?} {:?} {:?} {:?}", target.built, target.flags, target.rounds, target.settings);
        for folder in folders {
            let (sources, of_tests) = (format!("{folder}src/"), format!("{folder}tests/"));
            let modules: Vec<String> =
                self.below(&sources).flat_map(|(path, text)| test_modules(path, text)).collect();
            let is_of_tests = |path: &str| {
                path.starts_with(&of_tests)
                    || modules.iter().any(|module| {
                        path.strip_prefix(module.as_str())
                            .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
                    })
            };
            for (path, source) in self.below(&folder) {
                match is_of_tests(path) {
                    true => text.push_str(source),
                    false => text.push_str(source.split_once(INLINE).map_or("", |(_, tests)| tests)),
                }
            }
        }
        fingerprint(&text)
    }

    fn below(&self, folder: &str) -> impl Iterator<Item = (&str, &str)> {
        let files = self.files.range(folder.to_string()..);
        let files = files.map(|(path, text)| (path.as_str(), text.as_str()));
        let folder = folder.to_string();
        files.take_while(move |(path, _)| path.starts_with(&folder))
    }
}

/// The start of the module of tests with which a file ends.
const INLINE: &str = "\nmod tests {";

/// The test modules of a file that are in files of their own, as paths without an extension.
fn test_modules(path: &str, text: &str) -> Vec<String> {
    let folder = match path.strip_suffix(".rs").unwrap_or(path) {
        root if root.ends_with("/lib") || root.ends_with("/main") || root.ends_with("/mod") => {
            root.rsplit_once('/').map_or("", |(folder, _)| folder).to_string()
        }
        module => module.to_string(),
    };
    let lines: Vec<&str> = text.lines().collect();
    let marked =
        lines.iter().enumerate().filter(|(_, line)| line.starts_with("#[cfg(") && line.contains("test"));
    let declared = marked.filter_map(|(at, _)| lines[at..].iter().find(|line| !line.starts_with("#[")));
    let name = |line: &&str| {
        let (_, rest) = line.split_once("mod ")?;
        rest.strip_suffix(';').map(|name| format!("{folder}/{name}"))
    };
    declared.filter_map(name).collect()
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
    use crate::target::TARGETS;

    fn sources(text: &str) -> Sources {
        let mut sources = Sources::default();
        sources.add(text);
        sources
    }

    #[test]
    fn a_test_is_the_same_until_its_function_changes() {
        let text = "mod tests {\n    #[test]\n    fn one() {\n        assert!(true);\n    }\n\n    async fn other() {}\n}\n";
        let before = sources(text).of("a::tests::one");
        assert!(before.is_some());
        assert_eq!(sources(&format!("// New.\n{text}")).of("a::tests::one"), before);
        assert_eq!(sources(&text.replace("other() {}", "other() { 1 }")).of("a::tests::one"), before);
        assert_ne!(sources(&text.replace("true", "1 == 1")).of("a::tests::one"), before);
        assert_eq!(sources(text).of("a::tests::made_by_a_macro"), None);
    }

    #[test]
    fn tests_of_a_target_are_the_same_until_one_of_them_changes() {
        let target = TARGETS.iter().find(|target| target.name == "provider-kit").unwrap();
        let files = [
            (
                "crates/provider-kit/src/lib.rs",
                "#[cfg(all(test, unix))]\n#[path]\nmod checks;\nfn shipped() {}",
            ),
            ("crates/provider-kit/src/checks.rs", "fn a() {}"),
            ("crates/provider-kit/src/checks/deep.rs", "fn b() {}"),
            (
                "crates/provider-kit/src/plan.rs",
                "fn plan() {}\n#[cfg(test)]\nmod tests {\n    fn c() {}\n}\n",
            ),
            ("crates/provider-kit/tests/it/main.rs", "fn d() {}"),
            ("crates/provider-kit-other/tests/it/main.rs", "fn e() {}"),
        ];
        let of = |changed: &str| {
            let change = |text: &str| text.replace(&format!("fn {changed}()"), "fn changed()");
            let files = files.map(|(path, text)| (path.to_string(), change(text)));
            Sources { files: files.into(), ..Sources::default() }.of_all(target)
        };
        let before = of("nothing");
        let changes = |names: &[&str]| names.iter().map(|name| of(name) != before).collect::<Vec<_>>();
        assert_eq!(changes(&["shipped", "plan", "e"]), [false; 3]);
        assert_eq!(changes(&["a", "b", "c", "d"]), [true; 4]);
    }

    #[test]
    fn tests_are_named_by_the_lines_of_the_test_program() {
        assert_eq!(named("test a::b ... FAILED"), Some("a::b"));
        assert_eq!(named("test a::b - should panic ... FAILED"), Some("a::b"));
        assert_eq!(named("exit status: 101"), None);
    }
}
