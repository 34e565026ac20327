//! `cargo xtask licenses`: writes the licences of the packages in the `outlast` command, which `outlast licenses` prints.
//!
//! The file is committed, so that the build of the command needs no list of packages. A test compares it with the present packages.

use cargo_metadata::MetadataCommand;
use outlast_toolkit::process;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The file, from the root of the repository.
const PATH: &str = "crates/cli/licenses.txt";

/// The first characters of the names of files with licences, in lower case.
const NAMES: [&str; 5] = ["license", "licence", "copying", "notice", "unlicense"];

const TITLE: &str = "Packages in the command outlast, and the texts of their licences. `cargo xtask licenses` writes this file.\n";

/// A package of the registry in the command.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    name: String,
    version: String,
    /// The SPDX expression.
    license: String,
}

pub(super) fn run() -> Result<ExitCode, String> {
    let text = current()?;
    std::fs::write(process::root().join(PATH), &text).map_err(|error| format!("{PATH}: {error}"))?;
    println!("{PATH}: {} kB", text.len() / 1_000);
    Ok(ExitCode::SUCCESS)
}

/// The content of the file for the present packages.
fn current() -> Result<String, String> {
    let packages = packages()?;
    let folders = folders()?;
    let mut texts = Texts::default();
    let mut list = String::new();
    for package in &packages {
        let key = (package.name.clone(), package.version.clone());
        let found =
            folders.get(&key).ok_or_else(|| format!("no sources of {} {}", package.name, package.version))?;
        let numbers: Vec<String> = texts_of(package, found)?.iter().map(|text| texts.number(text)).collect();
        let Package { name, version, license } = package;
        let _ = writeln!(list, "{name} {version} | {license} | {}", numbers.join(" "));
    }
    let mut file = format!("{TITLE}\n[packages]\n{list}");
    for (number, text) in (1..).zip(&texts.all) {
        let _ = write!(file, "[text {number}]\n{text}");
    }
    Ok(file)
}

/// The packages of the registry that the command is linked with, on any platform and with all features. Macros are not among them:
/// they run while the command is compiled.
fn packages() -> Result<Vec<Package>, String> {
    let edges = "normal,no-proc-macro";
    let args = ["tree", "--locked", "-p", "outlast-cli", "--all-features", "-e", edges, "--target", "all"];
    let mut tree = process::cargo(&args);
    tree.args(["--prefix", "none", "--format", "{p}|{l}"]);
    Ok(listed(&process::output(&mut tree)?))
}

/// The packages of lines such as `name v1.0.0|MIT OR Apache-2.0 (*)`, each once. Packages of this repository have a path.
fn listed(tree: &str) -> Vec<Package> {
    let mut packages: Vec<Package> = tree
        .lines()
        .filter_map(|line| {
            let (id, license) = line.trim_end_matches(" (*)").split_once('|')?;
            let (name, version) = id.split_once(" v")?;
            let license = license.replace(" / ", " OR ").replace('/', " OR ");
            (!version.contains(' ')).then(|| Package {
                name: name.to_string(),
                version: version.to_string(),
                license,
            })
        })
        .collect();
    packages.sort();
    packages.dedup();
    packages
}

type Sources = BTreeMap<(String, String), (PathBuf, Vec<String>)>;

/// The folder and the authors of every package.
fn folders() -> Result<Sources, String> {
    let mut command = MetadataCommand::new();
    command.manifest_path(process::root().join("Cargo.toml"));
    command.features(cargo_metadata::CargoOpt::AllFeatures).other_options(vec!["--locked".to_string()]);
    let metadata = command.exec().map_err(|error| format!("`cargo metadata` failed: {error}"))?;
    let entry = |package: &cargo_metadata::Package| {
        let folder = package.manifest_path.parent()?.as_std_path().to_path_buf();
        Some(((package.name.to_string(), package.version.to_string()), (folder, package.authors.clone())))
    };
    Ok(metadata.packages.iter().filter_map(entry).collect())
}

/// The texts in the folder of a package; the common text of its licence if it has none.
fn texts_of(package: &Package, (folder, authors): &(PathBuf, Vec<String>)) -> Result<Vec<String>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        let is_code = Path::new(&name).extension().is_some_and(|extension| extension == "rs");
        if NAMES.iter().any(|start| name.starts_with(start)) && !is_code && entry.path().is_file() {
            paths.push(entry.path());
        }
    }
    paths.sort();
    let mut texts = Vec::new();
    for path in paths {
        let bytes = std::fs::read(&path).map_err(failed)?;
        texts.push(tidied(&String::from_utf8_lossy(&bytes)));
    }
    if texts.is_empty() {
        texts.push(common(package, authors)?);
    }
    Ok(texts)
}

/// The text of the licence of a package that has no file: Apache-2.0, which is the same for all packages, or MIT with the authors.
fn common(package: &Package, authors: &[String]) -> Result<String, String> {
    let own = |name: &str| {
        std::fs::read_to_string(process::root().join(name)).map_err(|error| format!("{name}: {error}"))
    };
    match () {
        () if package.license.contains("Apache-2.0") => Ok(tidied(&own("LICENSE-APACHE")?)),
        () if package.license.contains("MIT") => {
            let holder = if authors.is_empty() {
                format!("the authors of {}", package.name)
            } else {
                authors.join(", ")
            };
            let text = own("LICENSE-MIT")?;
            let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
            if let Some(line) = lines.iter_mut().find(|line| line.starts_with("Copyright")) {
                *line = format!("Copyright (c) {holder}");
            }
            Ok(tidied(&lines.join("\n")))
        }
        () => Err(format!(
            "{} {} has the licence {} and no text of it: add the text to tools/release/src/licenses.rs",
            package.name, package.version, package.license
        )),
    }
}

/// The text without trailing spaces and empty lines around it, so that equal texts are found. Control characters are removed.
fn tidied(text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(|line| line.replace(|char: char| char.is_control() && char != '\t', "").trim_end().to_string())
        .collect();
    format!("{}\n", lines.join("\n").trim_matches('\n'))
}

/// Different texts, in the order of their first use.
#[derive(Default)]
struct Texts {
    all: Vec<String>,
}

impl Texts {
    /// The number of a text, from 1. Texts that differ in white space only are the same.
    fn number(&mut self, text: &str) -> String {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let wanted = words(text);
        let known = self.all.iter().position(|known| words(known) == wanted);
        let index = known.unwrap_or_else(|| {
            self.all.push(text.to_string());
            self.all.len() - 1
        });
        (index + 1).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_of_licences_is_current() {
        let found = std::fs::read_to_string(process::root().join(PATH)).unwrap();
        let current = current().unwrap();
        let differs = found.lines().zip(current.lines()).find(|(found, current)| found != current);
        assert!(found == current, "{PATH} is not current: `cargo xtask licenses` writes it ({differs:?})");
    }

    #[test]
    fn packages_of_the_registry_are_listed_once() {
        let tree = "outlast v0.1.0 (/somewhere)|MIT OR Apache-2.0\nb v2.0.0|MIT\na v1.0.0|Apache-2.0/MIT\nb v2.0.0|MIT (*)\n";
        let listed: Vec<String> = listed(tree)
            .iter()
            .map(|found| format!("{} {} {}", found.name, found.version, found.license))
            .collect();
        assert_eq!(listed, ["a 1.0.0 Apache-2.0 OR MIT", "b 2.0.0 MIT"]);
    }

    #[test]
    fn texts_that_differ_in_white_space_are_one() {
        let mut texts = Texts::default();
        let numbers = ["a b\n", "a  b\n\n", "c\n", "a\nb\n"].map(|text| texts.number(text));
        assert_eq!(numbers, ["1", "1", "2", "1"]);
        assert_eq!(tidied("\n a \u{c}\r\nb\n\n"), " a\nb\n");
    }

    #[test]
    fn package_without_a_text_has_the_common_one() {
        let package =
            |license: &str| Package { name: "a".into(), version: "1".into(), license: license.into() };
        let authors = ["Ada".to_string()];
        assert!(common(&package("MIT"), &authors).unwrap().contains("Copyright (c) Ada\n"));
        assert!(common(&package("MIT OR Apache-2.0"), &authors).unwrap().contains("Apache License"));
        assert!(common(&package("ISC"), &authors).is_err());
    }
}
