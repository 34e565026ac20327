//! The files of the repository, read once for all rules.

use super::tables::{self, Tables};
use crate::metadata::code::{self, Hashes};
use crate::metadata::source::{Source, is_in_module};
use crate::metadata::{self, Package};
use outlast_toolkit::{files, process};

/// The files and packages that the rules check.
pub(super) struct Repo {
    /// Sorted by path.
    pub(super) files: Vec<File>,
    pub(super) packages: Vec<Package>,
    pub(super) tables: Tables,
    /// The hashes of the shipped code.
    pub(super) code: Hashes,
}

/// A file that git tracks, or a new file that git does not ignore.
pub(super) struct File {
    /// Relative to the root, with `/` between the parts.
    pub(super) path: String,
    /// Empty if the file is not UTF-8.
    pub(super) text: String,
    /// The parsed source of a `.rs` file.
    pub(super) rust: Option<Source>,
    /// The whole file is compiled for tests only.
    is_test: bool,
}

/// A violation of a rule, and its place.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) path: String,
    pub(super) line: usize,
    pub(super) message: String,
}

impl Repo {
    /// Reads all files and packages of the repository.
    pub(super) fn load() -> Result<Self, String> {
        let root = process::root();
        let mut files = Vec::new();
        for path in process::files()? {
            match std::fs::read(root.join(&path)) {
                Ok(bytes) => files.push((path, String::from_utf8(bytes).unwrap_or_default())),
                // git lists a deleted file until the deletion is staged.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(format!("{path} cannot be read: {error}")),
            }
        }
        let tables = Tables::parse(&files::read(&root.join(tables::PATH))?)?;
        Ok(Self::new(files, metadata::load()?, tables))
    }

    fn new(mut files: Vec<(String, String)>, packages: Vec<Package>, tables: Tables) -> Self {
        files.sort();
        files.dedup();
        let mut files: Vec<File> = files.into_iter().map(|(path, text)| File::new(path, text)).collect();
        let modules =
            |file: &File| file.rust.iter().flat_map(|rust| rust.test_modules(&file.path)).collect::<Vec<_>>();
        let outlined: Vec<String> = files.iter().flat_map(modules).collect();
        for file in &mut files {
            file.is_test |= outlined.iter().any(|module| is_in_module(&file.path, module));
        }
        let texts: Vec<(&str, &str)> =
            files.iter().map(|file| (file.path.as_str(), file.text.as_str())).collect();
        let code = code::hashes(&packages, &texts);
        Self { files, packages, tables, code }
    }

    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Whether the path is a file or a folder of the repository.
    pub(super) fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let is_at = |file: &File| {
            file.path.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        path.is_empty() || self.files.iter().any(is_at)
    }

    /// The Rust files, parsed.
    pub(super) fn rust(&self) -> impl Iterator<Item = (&File, &Source)> {
        self.files.iter().filter_map(|file| Some((file, file.rust.as_ref()?)))
    }

    pub(super) fn with_extension(&self, extension: &str) -> impl Iterator<Item = &File> {
        self.files
            .iter()
            .filter(move |file| file.path.rsplit_once('.').is_some_and(|(_, ext)| ext == extension))
    }
}

impl File {
    fn new(path: String, text: String) -> Self {
        let rust = path.ends_with(".rs").then(|| Source::parse(&text));
        let is_test = path.split('/').rev().skip(1).any(|folder| folder == "tests");
        Self { path, text, rust, is_test }
    }

    /// Whether the code at this offset is compiled for tests only.
    pub(super) fn is_test_at(&self, offset: usize) -> bool {
        self.is_test || self.rust.as_ref().is_some_and(|source| source.is_test_at(offset))
    }

    pub(super) fn finding(&self, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, message: message.into() }
    }

    /// The first line of a manifest that starts with this key.
    pub(super) fn line_of_key(&self, key: &str) -> usize {
        let names = |line: &str| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(['.', ' ', '=']));
        self.text.lines().position(names).map_or(1, |index| index + 1)
    }
}

#[cfg(test)]
impl Repo {
    /// A repository in memory.
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
        Self::new(files, Vec::new(), Tables::parse(include_str!("../../tidy.toml")).unwrap())
    }
}

/// Findings as `path:line: message`, for comparison.
#[cfg(test)]
pub(super) fn printed(findings: Vec<Finding>) -> Vec<String> {
    findings.into_iter().map(|f| format!("{}:{}: {}", f.path, f.line, f.message)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_code_is_recognised_by_folder_and_by_declaration() {
        let repo = Repo::of(&[
            ("crates/a/src/lib.rs", "#[cfg(test)]\nmod checks;\nmod plan;"),
            ("crates/a/src/checks.rs", "fn a() {}"),
            ("crates/a/src/checks/deep.rs", "fn a() {}"),
            ("crates/a/src/plan.rs", "#[cfg(test)] mod unit; fn a() {}"),
            ("crates/a/src/plan/unit.rs", "fn a() {}"),
            ("crates/a/tests/it/main.rs", "fn a() {}"),
        ]);
        let tests = repo.files.iter().filter(|file| file.is_test);
        let tests: Vec<&str> = tests.filter_map(|file| file.path.strip_prefix("crates/a/")).collect();
        assert_eq!(tests, ["src/checks.rs", "src/checks/deep.rs", "src/plan/unit.rs", "tests/it/main.rs"]);
    }
}
