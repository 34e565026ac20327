//! What may become part of the program: licences, sources and duplicates, as deny.toml says.
//!
//! These questions are asked here in every run, of what `cargo metadata` knows. [`advisories`] asks `cargo deny` for known
//! vulnerabilities, where its database can be had.

mod advisories;
mod config;
mod licence;

use std::collections::BTreeMap;

use serde_json::Value;

use self::config::Config;
use super::{Outcome, Tally};
use crate::process;

/// A package of the lock file.
#[derive(Debug, Clone)]
struct Package {
    name: String,
    version: String,
    licence: String,
    /// `None` for our own.
    source: Option<String>,
}

pub(super) fn run() -> Result<Outcome, String> {
    let path = process::root().join("deny.toml");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let config = Config::read(&text)?;
    let packages = packages()?;
    let mut tally = Tally::default();
    for (question, findings) in [
        ("licences", licences(&config, &packages)),
        ("sources", sources(&packages)),
        ("duplicates", duplicates(&config, &packages)),
    ] {
        println!("{question} of {} packages: {} finding(s)", packages.len(), findings.len());
        for finding in &findings {
            println!("  {finding}");
        }
        tally.check(format!("{question}: {}", findings.join("; ")), findings.is_empty());
    }
    advisories::check(&mut tally)?;
    Ok(Outcome::Ran(tally))
}

/// Everything that any feature on any platform could bring in.
fn packages() -> Result<Vec<Package>, String> {
    let mut command = process::cargo(&["metadata", "--format-version", "1", "--all-features", "--locked"]);
    let call = process::display(&command);
    let output = command.output().map_err(|error| format!("`{call}` could not be run: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{call}` failed:\n{}", String::from_utf8_lossy(&output.stderr).trim_end()));
    }
    let json: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("`{call}` printed something that is not JSON: {error}"))?;
    let text = |package: &Value, key: &str| package[key].as_str().map(str::to_string);
    let packages = json["packages"].as_array().into_iter().flatten().map(|package| Package {
        name: text(package, "name").unwrap_or_default(),
        version: text(package, "version").unwrap_or_default(),
        licence: text(package, "license").unwrap_or_default(),
        source: text(package, "source"),
    });
    Ok(packages.collect())
}

fn licences(config: &Config, packages: &[Package]) -> Vec<String> {
    let refused = packages.iter().filter(|package| !licence::is_met(&package.licence, &config.licences));
    refused
        .map(|package| {
            let licence = if package.licence.is_empty() { "no licence" } else { &package.licence };
            format!("{} {} has {licence}, which deny.toml does not allow", package.name, package.version)
        })
        .collect()
}

/// The index of the default registry, under both of its protocols.
const REGISTRY: [&str; 2] =
    ["registry+https://github.com/rust-lang/crates.io-index", "sparse+https://index.crates.io/"];

fn sources(packages: &[Package]) -> Vec<String> {
    let strange = packages.iter().filter_map(|package| {
        let source = package.source.as_deref().filter(|source| !REGISTRY.contains(source))?;
        Some(format!("{} {} comes from {source}, not from the registry", package.name, package.version))
    });
    strange.collect()
}

/// Two versions of one crate, of which deny.toml does not speak; and exceptions that nobody needs any more.
fn duplicates(config: &Config, packages: &[Package]) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    versions.retain(|_, found| found.len() > 1);
    let is_skipped = |name: &str, version: &str| {
        config.skipped.iter().any(|(skipped, prefix)| skipped == name && is_within(version, prefix))
    };
    let too_many = versions.iter().filter_map(|(name, found)| {
        let counted: Vec<&&str> = found.iter().filter(|version| !is_skipped(name, version)).collect();
        (counted.len() > 1).then(|| format!("{name} has the versions {counted:?}: unite them, or skip one"))
    });
    let needless = config.skipped.iter().filter(|(name, prefix)| {
        !versions.get(name.as_str()).is_some_and(|found| found.iter().any(|found| is_within(found, prefix)))
    });
    let needless = needless.map(|(name, prefix)| format!("{name} {prefix} is skipped for nothing"));
    too_many.chain(needless).collect()
}

/// Whether a version begins with these numbers.
fn is_within(version: &str, prefix: &str) -> bool {
    version.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, licence: &str, source: Option<&str>) -> Package {
        let [name, version, licence] = [name, version, licence].map(str::to_string);
        Package { name, version, licence, source: source.map(str::to_string) }
    }

    fn config() -> Config {
        Config { licences: vec!["MIT".to_string()], skipped: vec![("old".to_string(), "0.2".to_string())] }
    }

    #[test]
    fn each_question_finds_what_is_wrong() {
        let good =
            [package("a", "1.0.0", "MIT OR GPL-3.0", Some(REGISTRY[0])), package("us", "1.0.0", "MIT", None)];
        assert_eq!(licences(&config(), &good), [""; 0]);
        assert_eq!(sources(&good), [""; 0]);
        let bad = [
            package("a", "1.0.0", "GPL-3.0", Some("git+https://example.org/a")),
            package("b", "1.0.0", "", None),
        ];
        assert_eq!(licences(&config(), &bad).len(), 2);
        assert!(sources(&bad)[0].contains("git+https://example.org/a"), "{:?}", sources(&bad));
    }

    #[test]
    fn two_versions_need_an_exception_and_an_exception_needs_two_versions() {
        let of = |name: &str, versions: &[&str]| {
            versions.iter().map(|version| package(name, version, "MIT", None)).collect::<Vec<_>>()
        };
        let skipped = of("old", &["0.2.7", "0.3.1"]);
        assert_eq!(duplicates(&config(), &skipped), [""; 0]);
        let third = [skipped.clone(), of("old", &["1.0.0"])].concat();
        assert!(duplicates(&config(), &third)[0].starts_with("old has the versions"));
        assert!(
            duplicates(&config(), &[skipped, of("new", &["1.0.0", "2.0.0"])].concat())[0].contains("new")
        );
        let needless = duplicates(&config(), &of("old", &["0.2.7"]));
        assert_eq!(needless, ["old 0.2 is skipped for nothing"]);
        assert!(!is_within("0.21.0", "0.2"));
    }
}
