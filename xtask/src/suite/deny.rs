//! Checks licences, sources and duplicate versions of the dependencies against deny.toml.
//!
//! These checks need `cargo metadata` only and run everywhere. [`advisories`] runs `cargo deny` where it is available.

mod advisories;

use std::collections::BTreeMap;

use cargo_metadata::{CargoOpt, MetadataCommand};
use outlast_toolkit::{files, process};
use serde::Deserialize;
use spdx::{Expression, ParseMode};

use super::{Outcome, Tally};

/// The settings of deny.toml that are checked here.
#[derive(Deserialize)]
struct Config {
    licenses: Licences,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licences {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    skip: Vec<Skip>,
}

/// An old version of a crate that is tolerated.
#[derive(Deserialize)]
struct Skip {
    name: String,
    /// The first numbers of the version.
    version: String,
}

/// A package of the lock file.
#[derive(Debug, Clone)]
struct Package {
    name: String,
    version: String,
    licence: String,
    /// `None` for the packages of this workspace.
    source: Option<String>,
}

pub(super) fn run() -> Result<Outcome, String> {
    let text = files::read(&process::root().join("deny.toml"))?;
    let config: Config = toml::from_str(&text).map_err(|error| format!("deny.toml: {error}"))?;
    let packages = packages()?;
    let mut tally = Tally::default();
    for (check, findings) in [
        ("licences", licences(&config, &packages)),
        ("sources", sources(&packages)),
        ("duplicates", duplicates(&config, &packages)),
    ] {
        println!("{check} of {} packages: {} finding(s)", packages.len(), findings.len());
        findings.iter().for_each(|finding| println!("  {finding}"));
        tally.check(format!("{check}: {}", findings.join("; ")), findings.is_empty());
    }
    advisories::check(&mut tally)?;
    Ok(Outcome::Ran(tally))
}

/// The packages that any feature uses on any platform.
fn packages() -> Result<Vec<Package>, String> {
    let mut command = MetadataCommand::new();
    command.manifest_path(process::root().join("Cargo.toml"));
    command.features(CargoOpt::AllFeatures).other_options(["--locked".to_string()]);
    let metadata = command.exec().map_err(|error| format!("`cargo metadata` failed: {error}"))?;
    let packages = metadata.packages.into_iter().map(|package| Package {
        name: package.name.to_string(),
        version: package.version.to_string(),
        licence: package.license.unwrap_or_default(),
        source: package.source.map(|source| source.repr),
    });
    Ok(packages.collect())
}

fn licences(config: &Config, packages: &[Package]) -> Vec<String> {
    let refused = packages.iter().filter(|package| !is_allowed(&package.licence, &config.licenses.allow));
    refused
        .map(|package| {
            let licence = if package.licence.is_empty() { "no licence" } else { &package.licence };
            format!("{} {} has {licence}, which deny.toml does not allow", package.name, package.version)
        })
        .collect()
}

/// Whether the allowed licences satisfy the expression. An expression that cannot be parsed is refused.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    // Older manifests separate alternatives with `/`.
    let mode = ParseMode { allow_slash_as_or_operator: true, allow_deprecated: true, ..ParseMode::STRICT };
    let Ok(expression) = Expression::parse_mode(expression, mode) else { return false };
    expression.evaluate(|licence| allowed.contains(&licence.to_string()))
}

/// The index of the default registry, under both of its protocols.
const REGISTRY: [&str; 2] =
    ["registry+https://github.com/rust-lang/crates.io-index", "sparse+https://index.crates.io/"];

fn sources(packages: &[Package]) -> Vec<String> {
    let other = packages.iter().filter_map(|package| {
        let source = package.source.as_deref().filter(|source| !REGISTRY.contains(source))?;
        Some(format!("{} {} comes from {source}, not from the registry", package.name, package.version))
    });
    other.collect()
}

/// Crates with two versions that deny.toml does not skip, and skipped versions that are not in use.
fn duplicates(config: &Config, packages: &[Package]) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    versions.retain(|_, found| found.len() > 1);
    let skip = &config.bans.skip;
    let is_skipped = |name: &str, version: &str| {
        skip.iter().any(|skip| skip.name == name && is_within(version, &skip.version))
    };
    let duplicates = versions.iter().filter_map(|(name, found)| {
        let counted: Vec<&&str> = found.iter().filter(|version| !is_skipped(name, version)).collect();
        (counted.len() > 1).then(|| format!("{name} has the versions {counted:?}: unite them, or skip one"))
    });
    let unused = skip.iter().filter(|Skip { name, version }| {
        !versions.get(name.as_str()).is_some_and(|found| found.iter().any(|found| is_within(found, version)))
    });
    let unused =
        unused.map(|Skip { name, version }| format!("{name} {version} is skipped, but it is no duplicate"));
    duplicates.chain(unused).collect()
}

/// Whether a version starts with these numbers.
fn is_within(version: &str, numbers: &str) -> bool {
    version.strip_prefix(numbers).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, licence: &str, source: Option<&str>) -> Package {
        let [name, version, licence] = [name, version, licence].map(str::to_string);
        Package { name, version, licence, source: source.map(str::to_string) }
    }

    fn config() -> Config {
        let text = "[licenses]\nallow = [\"MIT\"]\n[bans]\nskip = [{ name = \"old\", version = \"0.2\", reason = \"x\" }]";
        toml::from_str(text).unwrap()
    }

    #[test]
    fn wrong_licences_and_sources_are_reported() {
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
    fn licence_expressions_are_evaluated() {
        let allowed = ["MIT", "Apache-2.0", "Unicode-3.0"].map(str::to_string);
        for (expression, expected) in [
            ("MIT", true),
            ("MIT/GPL-3.0", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR Apache-2.0", true),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR GPL-3.0) AND Unicode-3.0", true),
            ("MIT OR GPL-3.0 AND LGPL-2.1", true),
            ("(MIT OR GPL-3.0) AND LGPL-2.1", false),
            ("Apache-2.0 WITH LLVM-exception", false),
            ("Apache-2.0 WITH LLVM-exception OR MIT", true),
            ("", false),
            ("MIT OR", false),
            ("(MIT", false),
            ("MIT GPL-3.0", false),
        ] {
            assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
        }
    }

    #[test]
    fn two_versions_need_a_skip_and_a_skip_needs_two_versions() {
        let of = |name: &str, versions: &[&str]| {
            versions.iter().map(|version| package(name, version, "MIT", None)).collect::<Vec<_>>()
        };
        let skipped = of("old", &["0.2.7", "0.3.1"]);
        assert_eq!(duplicates(&config(), &skipped), [""; 0]);
        let third = [skipped.clone(), of("old", &["1.0.0"])].concat();
        assert!(duplicates(&config(), &third)[0].starts_with("old has the versions"));
        let other = [skipped, of("new", &["1.0.0", "2.0.0"])].concat();
        assert!(duplicates(&config(), &other)[0].contains("new"));
        assert_eq!(
            duplicates(&config(), &of("old", &["0.2.7"])),
            ["old 0.2 is skipped, but it is no duplicate"]
        );
        assert!(!is_within("0.21.0", "0.2"));
    }
}
