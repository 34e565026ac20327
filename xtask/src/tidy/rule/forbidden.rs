//! Packages that may not depend on tokio and similar crates, or only with some features.
//!
//! The engine, the model and the provider contract have no side effects because their manifests name no crate that has.
//! Dev-dependencies are not checked.

use super::edges::line_of;
use crate::metadata::{Dependency, Package};
use crate::tidy::repo::{Finding, Repo};

/// Packages that may wait with tokio, but may not start a runtime: the application chooses the runtime.
const ONLY_WAITING: &[&str] =
    &["outlast-provider-kit", "outlast-memory", "outlast-sqlite", "outlast-conformance"];
const WAITING: &[&str] = &["sync", "time"];

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &repo.packages {
        for dependency in package.dependencies.iter().filter(|dependency| !dependency.dev) {
            let line = || line_of(repo, package, &dependency.name);
            let message = forbidden(repo, package, dependency).or_else(|| too_much(package, dependency));
            findings.extend(message.map(|message| Finding {
                path: package.manifest(),
                line: line(),
                message,
            }));
        }
    }
    findings
}

fn forbidden(repo: &Repo, package: &Package, dependency: &Dependency) -> Option<String> {
    let names = repo.tables.forbidden.get(&package.name)?;
    names
        .contains(&dependency.name)
        .then(|| format!("`{}` may not depend on `{}`", package.name, dependency.name))
}

fn too_much(package: &Package, dependency: &Dependency) -> Option<String> {
    if dependency.name != "tokio" || !ONLY_WAITING.contains(&package.name.as_str()) {
        return None;
    }
    let extra: Vec<&str> =
        dependency.features.iter().map(String::as_str).filter(|feature| !WAITING.contains(feature)).collect();
    let rule = format!("`{}` may use tokio with the features {} only", package.name, WAITING.join(", "));
    (!extra.is_empty()).then(|| format!("{rule}, not {}", extra.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::repo::printed;

    fn findings(package: &str, dependency: &str, features: &[&str], dev: bool) -> Vec<String> {
        let features = features.iter().map(ToString::to_string).collect();
        let dependencies = vec![Dependency { name: dependency.to_string(), features, dev, optional: false }];
        let package =
            Package { name: package.to_string(), dir: "p".to_string(), dependencies, ..Package::default() };
        let mut repo = Repo::of(&[]);
        repo.packages = vec![package];
        printed(check(&repo))
    }

    #[test]
    fn packages_without_side_effects_refuse_their_dependencies() {
        let refused = [
            ("model", "tokio"),
            ("provider", "tokio"),
            ("engine", "tokio"),
            ("engine", "rand"),
            ("engine", "log"),
        ];
        for (package, dependency) in refused {
            assert_eq!(
                findings(&format!("outlast-{package}"), dependency, &[], false).len(),
                1,
                "{package} {dependency}"
            );
        }
        assert_eq!(findings("outlast-provider", "getrandom", &[], false).len(), 0);
        assert_eq!(
            findings("outlast-model", "tokio", &["full"], true).len(),
            0,
            "dev-dependencies are not checked"
        );
    }

    #[test]
    fn libraries_may_wait_but_not_start_a_runtime() {
        assert_eq!(findings("outlast-sqlite", "tokio", &["sync", "time"], false).len(), 0);
        let expected =
            "p/Cargo.toml:1: `outlast-sqlite` may use tokio with the features sync, time only, not rt";
        assert_eq!(findings("outlast-sqlite", "tokio", &["sync", "rt"], false), [expected]);
        assert_eq!(findings("outlast-runtime", "tokio", &["rt"], false).len(), 0);
    }
}
