//! Checks the facade with each feature alone, the examples with their required features, and each library alone.
//!
//! A build of the workspace unifies features: a crate that does not declare a feature it uses compiles there, but not
//! alone. Other suites build the programs of [`BUILT_ALONE`] alone.

use std::collections::BTreeSet;

use outlast_toolkit::process;

use super::Tally;
use crate::metadata::{self, Package};

const FACADE: &str = "outlast";
/// The packages of the programs that the suites `build` and `sim` build alone.
const BUILT_ALONE: [&str; 2] = ["outlast-chaos", "outlast-sim"];
/// Declares features of `syn`, so it is checked without [`MACRO_FEATURES`].
const MACROS: &str = "outlast-macros";
/// Is checked together with each package: the derive macros of the dependencies are compiled once instead of for each set
/// of features of `syn`. The features of all other dependencies are those of the checked package.
pub(super) const MACRO_FEATURES: &str = "outlast-macro-features";
/// Is checked together with examples, and with packages that need the SDK of Azure: their dependencies have the features of the whole
/// workspace and are compiled once. The store of Cosmos DB, which alone uses the SDK, is checked without it.
pub(super) const DEPENDENCY_FEATURES: &str = "outlast-dependency-features";
/// The feature of the facade, and the package, that need the SDK of Azure.
const NEEDS_SDK: [&str; 2] = ["cosmos", "outlast-cosmos-rig"];

pub(super) fn run() -> Result<Tally, String> {
    let mut tally = Tally::default();
    for combination in combinations(&metadata::load()?)? {
        let command = process::cargo(&combination);
        let name = process::display(&command);
        tally.check(name, process::stream(command, |_| {})?.success());
    }
    Ok(tally)
}

/// The arguments of cargo for each check.
fn combinations(packages: &[Package]) -> Result<Vec<Vec<String>>, String> {
    let facade = packages
        .iter()
        .find(|package| package.name == FACADE)
        .ok_or_else(|| format!("the workspace has no package `{FACADE}`"))?;
    let mut all = vec![check(FACADE, &["--no-default-features"])];
    all.extend(facade.features.keys().map(|feature| {
        let args = ["--no-default-features", "--features", feature];
        if NEEDS_SDK.contains(&feature.as_str()) { check_shared(FACADE, &args) } else { check(FACADE, &args) }
    }));
    all.push(check_shared(FACADE, &["--all-features"]));
    let is_library =
        |package: &&Package| package.targets.iter().any(|target| target.is_lib() || target.is_proc_macro());
    let libraries = packages.iter().filter(is_library).filter(|package| package.name != FACADE);
    let is_checked =
        |name: &str| !BUILT_ALONE.contains(&name) && ![MACRO_FEATURES, DEPENDENCY_FEATURES].contains(&name);
    let libraries = libraries.filter(|package| is_checked(&package.name));
    all.extend(libraries.map(|library| {
        let check = if NEEDS_SDK.contains(&library.name.as_str()) { check_shared } else { check };
        check(&library.name, &["--no-default-features"])
    }));
    all.extend(packages.iter().flat_map(examples));
    Ok(all)
}

/// One call for each set of required features. Cargo skips examples that need other features.
fn examples(package: &Package) -> Vec<Vec<String>> {
    let examples = package.targets.iter().filter(|target| target.is_example());
    let sets: BTreeSet<String> = examples.map(|target| target.required_features.join(",")).collect();
    let calls = sets.iter().map(|set| match set.is_empty() {
        true => check_shared(&package.name, &["--examples"]),
        false => check_shared(&package.name, &["--examples", "--features", set]),
    });
    calls.collect()
}

fn check(package: &str, args: &[&str]) -> Vec<String> {
    let with: &[&str] = if package == MACROS { &[] } else { &["-p", MACRO_FEATURES] };
    ["check", "-p", package].iter().chain(with).chain(args).map(ToString::to_string).collect()
}

fn check_shared(package: &str, args: &[&str]) -> Vec<String> {
    let with = ["-p", DEPENDENCY_FEATURES];
    check(package, &[&with, args].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn package(folder: &str, features: &[&str], targets: &[(&str, &[&str])]) -> Package {
        let mut package = metadata::sample(folder, &[]);
        package.features = features.iter().map(|feature| (feature.to_string(), Vec::new())).collect();
        let target = |(kind, required): &(&str, &[&str])| {
            serde_json::from_value(
                json!({"name": "x", "kind": [kind], "src_path": "x.rs", "required-features": required}),
            )
        };
        package.targets = targets.iter().map(|row| target(row).unwrap()).collect();
        package
    }

    #[test]
    fn each_feature_of_the_facade_and_each_library_is_checked_alone() {
        let examples = [("lib", &[][..]), ("example", &[]), ("example", &["sqlite"]), ("example", &[])];
        let packages = [
            package("outlast", &["cosmos", "default", "sqlite"], &examples),
            package("macros", &[], &[("proc-macro", &[])]),
            package("model", &["extra"], &[("lib", &[])]),
            package("cosmos-rig", &[], &[("lib", &[])]),
            package("sim", &[], &[("lib", &[])]),
            package("cli", &[], &[("bin", &[])]),
        ];
        let calls: Vec<String> = combinations(&packages).unwrap().iter().map(|call| call.join(" ")).collect();
        let expected = [
            "check -p outlast -p outlast-macro-features --no-default-features",
            "check -p outlast -p outlast-macro-features -p outlast-dependency-features --no-default-features --features cosmos",
            "check -p outlast -p outlast-macro-features --no-default-features --features default",
            "check -p outlast -p outlast-macro-features --no-default-features --features sqlite",
            "check -p outlast -p outlast-macro-features -p outlast-dependency-features --all-features",
            "check -p outlast-macros --no-default-features",
            "check -p outlast-model -p outlast-macro-features --no-default-features",
            "check -p outlast-cosmos-rig -p outlast-macro-features -p outlast-dependency-features --no-default-features",
            "check -p outlast -p outlast-macro-features -p outlast-dependency-features --examples",
            "check -p outlast -p outlast-macro-features -p outlast-dependency-features --examples --features sqlite",
        ];
        assert_eq!(calls, expected);
        assert!(combinations(&packages[1..]).unwrap_err().contains("no package `outlast`"));
    }
}
