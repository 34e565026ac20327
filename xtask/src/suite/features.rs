//! Compiles what a user may choose: the facade with each feature alone, and each library without the others around it.
//!
//! A workspace build unifies features, so a crate that forgot one of its own still compiles there. Alone it does not.

use super::{Outcome, Tally};
use crate::metadata::{self, Package};
use crate::process;

const FACADE: &str = "outlast";

pub(super) fn run() -> Result<Outcome, String> {
    let mut tally = Tally::default();
    for combination in combinations(&metadata::load()?)? {
        let command = process::cargo(&combination);
        let name = process::display(&command);
        tally.check(name, process::stream(command, |_| {})?.success());
    }
    Ok(Outcome::Ran(tally))
}

fn combinations(packages: &[Package]) -> Result<Vec<Vec<String>>, String> {
    let facade = packages
        .iter()
        .find(|package| package.name == FACADE)
        .ok_or_else(|| format!("the workspace has no package `{FACADE}`"))?;
    let mut all = vec![check(FACADE, &["--no-default-features"])];
    all.extend(facade.features.iter().map(|f| check(FACADE, &["--no-default-features", "--features", f])));
    all.push(check(FACADE, &["--all-features"]));
    let libraries = packages.iter().filter(|package| package.is_library() && package.name != FACADE);
    all.extend(libraries.map(|library| check(&library.name, &["--no-default-features"])));
    Ok(all)
}

fn check(package: &str, args: &[&str]) -> Vec<String> {
    ["check", "-p", package].iter().chain(args).map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Target;

    fn package(name: &str, kind: &str, features: &[&str]) -> Package {
        let target = Target { kinds: vec![kind.to_string()], ..Target::default() };
        let features = features.iter().map(ToString::to_string).collect();
        Package { name: name.to_string(), targets: vec![target], features, ..Package::default() }
    }

    #[test]
    fn each_feature_of_the_facade_and_each_library_is_checked_alone() {
        let packages = [
            package("outlast", "lib", &["default", "sqlite"]),
            package("outlast-macros", "proc-macro", &[]),
            package("outlast-model", "lib", &["extra"]),
            package("xtask", "bin", &[]),
        ];
        let calls: Vec<String> = combinations(&packages).unwrap().iter().map(|call| call.join(" ")).collect();
        let expected = [
            "check -p outlast --no-default-features",
            "check -p outlast --no-default-features --features default",
            "check -p outlast --no-default-features --features sqlite",
            "check -p outlast --all-features",
            "check -p outlast-macros --no-default-features",
            "check -p outlast-model --no-default-features",
        ];
        assert_eq!(calls, expected);
    }

    #[test]
    fn a_workspace_without_the_facade_is_an_error() {
        assert!(combinations(&[package("xtask", "bin", &[])]).unwrap_err().contains("no package `outlast`"));
    }
}
