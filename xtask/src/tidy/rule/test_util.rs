//! A production build never has tokio's `test-util`: no published package enables it, except `outlast-testing`, which the facade has
//! behind a feature that is off by default.

use super::edges::line_of;
use crate::metadata::{Dependency, Package};
use crate::tidy::repo::{Finding, Repo};

const TESTING: &str = "outlast-testing";
const FACADE: &str = "outlast";
const FEATURE: &str = "testing";

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &repo.packages {
        let text = repo.file(&package.manifest()).map_or("", |file| file.text.as_str());
        let manifest: toml::Table = text.parse().unwrap_or_default();
        let publish = manifest.get("package").and_then(|package| package.get("publish"));
        if package.name == TESTING || publish == Some(&toml::Value::Boolean(false)) {
            continue;
        }
        for dependency in package.dependencies.iter().filter(|dependency| !dependency.dev) {
            let message = problem(package, dependency);
            let line = || line_of(repo, package, &dependency.name);
            findings.extend(message.map(|message| Finding {
                path: package.manifest(),
                line: line(),
                message,
            }));
        }
        if package.name == FACADE && is_default(&manifest, "default") {
            let message = format!("the feature `{FEATURE}` is on by default");
            findings.push(Finding { path: package.manifest(), line: 1, message });
        }
    }
    findings
}

fn problem(package: &Package, dependency: &Dependency) -> Option<String> {
    let has = |feature: &str| dependency.features.iter().any(|enabled| enabled == feature);
    match dependency.name.as_str() {
        "tokio" if has("test-util") => {
            Some(format!("`{}` enables `test-util` of tokio in production builds", package.name))
        }
        TESTING if !(package.name == FACADE && dependency.optional) => {
            Some(format!("`{TESTING}` is for dev-dependencies: it enables `test-util` of tokio"))
        }
        FACADE if has(FEATURE) => {
            Some(format!("the feature `{FEATURE}` is for dev-dependencies: it enables `test-util` of tokio"))
        }
        _ => None,
    }
}

/// Whether a feature of the facade enables the test kit, directly or through others.
fn is_default(manifest: &toml::Table, feature: &str) -> bool {
    let enabled = manifest.get("features").and_then(|features| features.get(feature));
    let mut enabled =
        enabled.and_then(toml::Value::as_array).into_iter().flatten().filter_map(toml::Value::as_str);
    enabled.any(|other| other == FEATURE || other == format!("dep:{TESTING}") || is_default(manifest, other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(name: &str, manifest: &str, dependency: Dependency) -> usize {
        let mut repo = Repo::of(&[("p/Cargo.toml", manifest)]);
        let dependencies = vec![dependency];
        repo.packages = vec![Package {
            name: name.to_string(),
            dir: "p".to_string(),
            dependencies,
            ..Package::default()
        }];
        check(&repo).len()
    }

    fn dependency(name: &str, feature: &str, dev: bool, optional: bool) -> Dependency {
        Dependency { name: name.to_string(), features: vec![feature.to_string()], dev, optional }
    }

    #[test]
    fn published_packages_do_not_enable_test_util() {
        let tokio = |dev| dependency("tokio", "test-util", dev, false);
        assert_eq!(findings("outlast-runtime", "", tokio(false)), 1);
        assert_eq!(findings("outlast-runtime", "", tokio(true)), 0);
        assert_eq!(findings("outlast-runtime", "", dependency("tokio", "rt", false, false)), 0);
        assert_eq!(findings("outlast-testing", "", tokio(false)), 0);
        assert_eq!(findings("outlast-sim", "[package]\npublish = false", tokio(false)), 0);
    }

    #[test]
    fn only_a_feature_of_the_facade_enables_the_test_kit() {
        let kit = |optional| dependency(TESTING, "", false, optional);
        assert_eq!(findings("outlast-cli", "", kit(false)), 1);
        assert_eq!(findings("outlast-cli", "", dependency(FACADE, FEATURE, false, false)), 1);
        assert_eq!(findings(FACADE, "", kit(true)), 0);
        assert_eq!(findings(FACADE, "", kit(false)), 1);
        let default = "[features]\ndefault = [\"test\"]\ntest = [\"testing\"]";
        assert_eq!(findings(FACADE, default, kit(true)), 1);
        assert_eq!(findings(FACADE, "[features]\ndefault = [\"macros\"]\nmacros = []", kit(true)), 0);
    }
}
