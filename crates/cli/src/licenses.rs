//! `outlast licenses`: the licences of the packages in this command.

use crate::args::Format;
use crate::failure::Failure;
use crate::output::{print, table};
use clap::Args as ClapArgs;
use serde::Serialize;

/// Made by `cargo xtask licenses`.
const FILE: &str = include_str!("../licenses.txt");

/// Print the licences of the packages in this command, with their texts.
///
/// The list has the packages of all platforms and features. Beside them the command has the standard library of Rust (MIT OR Apache-2.0)
/// and SQLite (public domain). Outlast itself is MIT OR Apache-2.0.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  outlast licenses | less
  outlast licenses --list
  outlast licenses serde -o json")]
pub(crate) struct LicensesArgs {
    /// Only this package
    package: Option<String>,
    /// Print the packages and the names of their licences, without texts
    #[arg(long)]
    list: bool,
    /// Output format: a table, one JSON document, or one JSON object per line
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

pub(crate) fn run(args: &LicensesArgs) -> Result<(), Failure> {
    let mut licenses = Licenses::parse(FILE);
    if let Some(name) = &args.package {
        licenses.packages.retain(|package| package.name == *name);
        if licenses.packages.is_empty() {
            return Err(Failure::not_found(format!(
                "this command has no package '{name}': `outlast licenses --list` shows its packages"
            )));
        }
        let used = |number| licenses.packages.iter().any(|package| package.texts.contains(&number));
        licenses.texts.retain(|text| used(text.number));
    }
    if args.list {
        licenses.texts.clear();
    }
    print(args.output, &licenses, |licenses| licenses.text(args.list))
}

#[derive(Serialize)]
struct Licenses<'a> {
    packages: Vec<Package<'a>>,
    texts: Vec<Text<'a>>,
}

#[derive(Serialize)]
struct Package<'a> {
    name: &'a str,
    version: &'a str,
    /// The SPDX expression.
    license: &'a str,
    /// The numbers of the texts.
    texts: Vec<usize>,
}

#[derive(Serialize)]
struct Text<'a> {
    number: usize,
    text: &'a str,
}

impl<'a> Licenses<'a> {
    fn parse(file: &'a str) -> Self {
        let (_, rest) = file.split_once("[packages]\n").unwrap_or_default();
        let mut parts = rest.split("\n[text ");
        let packages = parts.next().unwrap_or_default().lines().filter_map(Package::parse).collect();
        let texts = parts.filter_map(|part| {
            let (number, text) = part.split_once("]\n")?;
            Some(Text { number: number.parse().ok()?, text })
        });
        Self { packages, texts: texts.collect() }
    }

    fn text(&self, list: bool) -> String {
        let row = |package: &Package<'_>| {
            let numbers: Vec<String> = package.texts.iter().map(ToString::to_string).collect();
            let mut row =
                vec![package.name.to_string(), package.version.to_string(), package.license.to_string()];
            row.extend((!list).then(|| numbers.join(", ")));
            row
        };
        let header = ["PACKAGE", "VERSION", "LICENCE", "TEXTS"];
        let header = if list { &header[..3] } else { &header[..] };
        let mut text = table(header, &self.packages.iter().map(row).collect::<Vec<_>>());
        for Text { number, text: license } in &self.texts {
            text.push_str(&format!("\n---- text {number} ----\n\n{}\n", license.trim_end_matches('\n')));
        }
        text
    }
}

impl<'a> Package<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut parts = line.split(" | ");
        let (name, version) = parts.next()?.split_once(' ')?;
        let license = parts.next()?;
        let texts = parts.next()?.split(' ').filter_map(|number| number.parse().ok()).collect();
        Some(Self { name, version, license, texts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_has_texts_that_exist() {
        let licenses = Licenses::parse(FILE);
        assert!(licenses.packages.len() > 50, "{} packages", licenses.packages.len());
        for package in &licenses.packages {
            assert!(!package.texts.is_empty(), "{}", package.name);
            for number in &package.texts {
                assert!(
                    licenses.texts.iter().any(|text| text.number == *number),
                    "{} {number}",
                    package.name
                );
            }
        }
        let list = FILE.split("[packages]\n").nth(1).unwrap().split("\n[text ").next().unwrap();
        let lines = list.lines().count();
        assert_eq!(licenses.packages.len(), lines, "every line of the file is understood");
        let numbers: Vec<usize> = licenses.texts.iter().map(|text| text.number).collect();
        assert_eq!(
            numbers,
            (1..=numbers.len()).collect::<Vec<_>>(),
            "no text has a line that looks like a title"
        );
    }
}
