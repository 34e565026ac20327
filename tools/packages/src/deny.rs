//! Licences, sources and duplicate versions of the dependencies, judged by deny.toml. `cargo metadata` is enough for these checks,
//! so that they run everywhere.

use std::collections::BTreeMap;

use cargo_metadata::{CargoOpt, MetadataCommand, Package};
use outlast_toolkit::{files, process};
use serde::Deserialize;
use spdx::{Expression, ParseMode};

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

/// The findings of one check.
pub struct Check {
    /// The name of the check.
    pub name: &'static str,
    /// One sentence for each violation.
    pub findings: Vec<String>,
}

/// Runs the checks, and returns the number of packages with them.
pub fn checks() -> Result<(usize, [Check; 3]), String> {
    let text = files::read(&process::root().join("deny.toml"))?;
    let config: Config = toml::from_str(&text).map_err(|error| format!("deny.toml: {error}"))?;
    let packages = packages()?;
    let checks = [
        Check { name: "licences", findings: licences(&config, &packages) },
        Check { name: "sources", findings: sources(&packages) },
        Check { name: "duplicates", findings: duplicates(&config, &packages) },
    ];
    Ok((packages.len(), checks))
}

/// The packages that any feature uses on any platform.
fn packages() -> Result<Vec<Package>, String> {
    let mut command = MetadataCommand::new();
    command.manifest_path(process::root().join("Cargo.toml"));
    command.features(CargoOpt::AllFeatures).other_options(["--locked".to_string()]);
    let metadata = command.exec().map_err(|error| format!("`cargo metadata` failed: {error}"))?;
    Ok(metadata.packages)
}

fn licences(config: &Config, packages: &[Package]) -> Vec<String> {
    let licence = |package: &Package| package.license.clone().unwrap_or_default();
    let refused = packages.iter().filter(|package| !is_allowed(&licence(package), &config.licenses.allow));
    refused
        .map(|package| {
            let (name, version, licence) = (&package.name, &package.version, licence(package));
            format!("{name} {version} has the licence `{licence}`, which deny.toml does not allow")
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
    let other = packages.iter().filter_map(|Package { name, version, source, .. }| {
        let source = source.as_ref().filter(|source| !REGISTRY.contains(&source.repr.as_str()))?;
        Some(format!("{name} {version} comes from {source}, not from the registry"))
    });
    other.collect()
}

/// Crates with two versions that deny.toml does not skip, and skipped versions that are not in use.
fn duplicates(config: &Config, packages: &[Package]) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().push(package.version.to_string());
    }
    versions.retain(|_, found| found.len() > 1);
    let skip = &config.bans.skip;
    let is_skipped = |name: &str, version: &str| {
        skip.iter().any(|skip| skip.name == name && is_within(version, &skip.version))
    };
    let duplicates = versions.iter().filter_map(|(name, found)| {
        let counted: Vec<&String> = found.iter().filter(|version| !is_skipped(name, version)).collect();
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

    fn package(name: &str, version: &str, licence: Option<&str>, source: Option<&str>) -> Package {
        let mut package = crate::sample(name, &[]);
        package.version = version.parse().unwrap();
        package.license = licence.map(str::to_string);
        package.source = source.map(|source| serde_json::from_value(source.into()).unwrap());
        package
    }

    fn config() -> Config {
        let text = "[licenses]\nallow = [\"MIT\"]\n[bans]\nskip = [{ name = \"outlast-old\", version = \"0.2\", reason = \"x\" }]";
        toml::from_str(text).unwrap()
    }

    #[test]
    fn wrong_licences_and_sources_are_reported() {
        let good = [
            package("a", "1.0.0", Some("MIT OR GPL-3.0"), Some(REGISTRY[0])),
            package("us", "1.0.0", Some("MIT"), None),
        ];
        assert_eq!((licences(&config(), &good), sources(&good)), (vec![], vec![]));
        let bad = [
            package("a", "1.0.0", Some("GPL-3.0"), Some("git+https://example.org/a")),
            package("b", "1.0.0", None, None),
        ];
        assert_eq!(licences(&config(), &bad).len(), 2);
        assert!(sources(&bad)[0].contains("git+https://example.org/a"), "{:?}", sources(&bad));
    }

    #[test]
    fn licence_expressions_are_evaluated() {
        let allowed = ["MIT", "Apache-2.0", "Unicode-3.0"].map(str::to_string);
        let yes = "MIT, MIT/GPL-3.0, (MIT OR GPL-3.0) AND Unicode-3.0, Apache-2.0 WITH LLVM-exception OR MIT";
        let no = "GPL-3.0, MIT AND GPL-3.0, Apache-2.0 WITH LLVM-exception, , MIT OR, (MIT, MIT GPL-3.0";
        let evaluated =
            |list: &str| list.split(", ").map(|licence| is_allowed(licence, &allowed)).collect::<Vec<_>>();
        assert_eq!((evaluated(yes), evaluated(no)), (vec![true; 4], vec![false; 7]));
    }

    #[test]
    fn two_versions_need_a_skip_and_a_skip_needs_two_versions() {
        let found = |packages: &[(&str, &str)]| {
            let packages: Vec<Package> =
                packages.iter().map(|(name, version)| package(name, version, None, None)).collect();
            duplicates(&config(), &packages)
        };
        let (old, older) = (("old", "0.3.1"), ("old", "0.2.7"));
        assert_eq!(found(&[old, older]), [""; 0]);
        assert!(found(&[old, older, ("old", "1.0.0")])[0].starts_with("outlast-old has the versions"));
        assert!(found(&[old, older, ("new", "1.0.0"), ("new", "2.0.0")])[0].contains("outlast-new"));
        assert_eq!(found(&[older]), ["outlast-old 0.2 is skipped, but it is no duplicate"]);
        assert!(!is_within("0.21.0", "0.2"));
    }
}
