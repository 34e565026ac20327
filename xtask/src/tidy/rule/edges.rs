//! The packages that a package may depend on. Tests may use every package, so dev-dependencies are not checked.
//!
//! `edges`: a package depends only on the packages of this workspace that the table allows, and is named after its folder.
//! Other rules have rows in the table `refused_dependencies`.

use std::collections::BTreeSet;

use crate::metadata::{self, Dependency, Package};
use crate::tidy::repo::{Finding, Repo};
use crate::tidy::tables::{PATH, RefusedDependency};

const FACADE: &str = "outlast";
/// The feature of the facade that enables tokio's `test-util`.
const TESTING: [&str; 2] = ["testing", "dep:outlast-testing"];

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let mut findings = unknown_folders(repo);
    for package in &repo.packages {
        let folder = metadata::folder(package);
        let expected = package_name(folder);
        if package.name != expected {
            let message = format!("the package in `{folder}` is named `{}`, not `{expected}`", package.name);
            findings.push(Finding { path: metadata::manifest(package), line: 1, message });
        }
        let allowed = repo.tables.edges.get(folder).filter(|allowed| !allowed.iter().any(|name| name == "*"));
        findings.extend(allowed.into_iter().flat_map(|allowed| unwanted(repo, package, folder, allowed)));
    }
    findings
}

/// The rows of `refused_dependencies` for one rule.
pub(in crate::tidy) fn refused(repo: &Repo, rule: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &repo.packages {
        for row in repo.tables.refused_dependencies.iter().filter(|row| row.rule == rule) {
            let refused =
                metadata::shipped(package).filter(|dependency| is_refused(row, package, dependency));
            findings.extend(refused.map(|dependency| {
                let message = format!("`{}` may not have `{}`: {}", package.name, dependency.name, row.why);
                on_dependency(repo, package, dependency, message)
            }));
        }
    }
    findings
}

/// The facade does not enable the test kit by default.
pub(in crate::tidy) fn test_util(repo: &Repo) -> Vec<Finding> {
    let facade = repo.packages.iter().filter(|package| package.name == FACADE);
    let message = format!("the feature `{}` is on by default", TESTING[0]);
    let on_manifest =
        |facade| Finding { path: metadata::manifest(facade), line: 1, message: message.clone() };
    facade.filter(|facade| enables_tests(facade, "default")).map(on_manifest).collect()
}

/// Folders of packages without a row in the table.
fn unknown_folders(repo: &Repo) -> Vec<Finding> {
    let parts = repo.files.iter().map(|file| file.path.splitn(3, '/').collect::<Vec<_>>());
    let folders: BTreeSet<(&str, &str)> = parts
        .filter_map(|parts| match parts[..] {
            [parent @ ("crates" | "tools"), folder, _] => Some((parent, folder)),
            _ => None,
        })
        .collect();
    let unknown = folders.into_iter().filter(|(_, folder)| !repo.tables.edges.contains_key(*folder));
    unknown
        .map(|(parent, folder)| Finding {
            path: format!("{parent}/{folder}/Cargo.toml"),
            line: 1,
            message: format!("`{folder}` has no row in the table `edges` of {PATH}"),
        })
        .collect()
}

/// Dependencies on packages of this workspace that the table does not allow.
fn unwanted(repo: &Repo, package: &Package, folder: &str, allowed: &[String]) -> Vec<Finding> {
    let ours = |name: &str| name.starts_with(FACADE) || repo.packages.iter().any(|p| p.name == name);
    let may = |name: &str| allowed.iter().any(|folder| package_name(folder) == name);
    let unwanted =
        metadata::shipped(package).filter(|dependency| ours(&dependency.name) && !may(&dependency.name));
    let allowed = if allowed.is_empty() { "none".to_string() } else { allowed.join(", ") };
    unwanted
        .map(|dependency| {
            let message = format!("`{folder}` may not depend on `{}`; allowed: {allowed}", dependency.name);
            on_dependency(repo, package, dependency, message)
        })
        .collect()
}

/// Whether a row refuses this dependency of this package.
fn is_refused(row: &RefusedDependency, package: &Package, dependency: &Dependency) -> bool {
    let is_published = package.publish.as_ref().is_none_or(|registries| !registries.is_empty());
    let names = |list: &[String], name: &str| list.iter().any(|listed| listed == name);
    let is_meant = names(&row.of, &package.name)
        || (is_published && names(&row.of, "published") && !names(&row.except, &package.name));
    let is_wrong = match (&row.only, &row.without) {
        (None, None) => !(row.unless_optional && dependency.optional),
        (only, without) => dependency.features.iter().any(|feature| {
            without.as_ref() == Some(feature) || only.as_ref().is_some_and(|only| !only.contains(feature))
        }),
    };
    is_meant && names(&row.on, &dependency.name) && is_wrong
}

/// Whether a feature enables the test kit, directly or through others.
fn enables_tests(facade: &Package, feature: &str) -> bool {
    let mut enabled = facade.features.get(feature).into_iter().flatten();
    enabled.any(|other| TESTING.contains(&other.as_str()) || enables_tests(facade, other))
}

/// A finding at the line of the manifest that names the dependency.
fn on_dependency(repo: &Repo, package: &Package, dependency: &Dependency, message: String) -> Finding {
    let path = metadata::manifest(package);
    let line = repo.file(&path).map_or(1, |file| file.line_of_key(&dependency.name));
    Finding { path, line, message }
}

/// The name of the package in a folder.
fn package_name(folder: &str) -> String {
    match folder {
        "outlast" | "xtask" => folder.to_string(),
        _ => format!("outlast-{folder}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::sample;
    use crate::tidy::repo::printed;

    fn of(packages: Vec<Package>, rule: fn(&Repo) -> Vec<Finding>) -> Vec<String> {
        printed(rule(&Repo { packages, ..Repo::of(&[]) }))
    }

    #[test]
    fn a_dependency_that_the_table_lacks_is_refused_at_its_line() {
        let text = "[dependencies]\nserde = \"1\"\noutlast-runtime.workspace = true\n";
        let mut repo = Repo::of(&[("crates/engine/Cargo.toml", text)]);
        repo.packages =
            vec![sample("engine", &["serde", "outlast-model", "outlast-runtime", "outlast-sim dev"])];
        let expected =
            ["crates/engine/Cargo.toml:3: `engine` may not depend on `outlast-runtime`; allowed: model"];
        assert_eq!(printed(check(&repo)), expected);
        assert_eq!(of(vec![sample("outlast", &["outlast-sqlite", "outlast-cli"])], check).len(), 1);
    }

    #[test]
    fn a_folder_has_a_row_and_the_name_of_its_package() {
        let files = [
            "crates/misc/src/lib.rs",
            "crates/misc/Cargo.toml",
            "crates/model/a",
            "tools/other/a",
            "tools/a",
        ];
        let findings = printed(check(&Repo::of(&files.map(|path| (path, "")))));
        assert_eq!(findings.len(), 2);
        assert!(findings[0].starts_with("crates/misc/Cargo.toml:1: `misc` has no row"), "{findings:?}");
        assert!(findings[1].starts_with("tools/other/Cargo.toml:1: `other` has no row"), "{findings:?}");
        let mut renamed = sample("model", &[]);
        renamed.manifest_path = "crates/engine/Cargo.toml".into();
        assert_eq!(of(vec![renamed], check).len(), 1);
    }

    #[test]
    fn packages_refuse_the_dependencies_of_their_rows() {
        for (package, dependency, count) in [
            ("model", "tokio", 1),
            ("provider", "tokio", 1),
            ("lens", "tokio", 1),
            ("engine", "tokio", 1),
            ("engine", "rand", 1),
            ("engine", "log", 1),
            ("provider", "getrandom", 0),
            ("model", "tokio dev full", 0),
            ("sqlite", "tokio sync time", 0),
            ("sqlite", "tokio sync rt", 1),
            ("runtime", "tokio rt", 0),
        ] {
            let found = of(vec![sample(package, &[dependency])], |repo| refused(repo, "forbidden"));
            assert_eq!(found.len(), count, "{package} {dependency}: {found:?}");
        }
    }

    #[test]
    fn production_builds_have_no_test_util() {
        for (package, dependency, count) in [
            ("runtime", "tokio test-util", 1),
            ("runtime", "tokio dev test-util", 0),
            ("runtime", "tokio rt", 0),
            ("testing", "tokio test-util", 0),
            ("cli", "outlast-testing optional", 1),
            ("cli", "outlast testing", 1),
            ("outlast", "outlast-testing optional", 0),
            ("outlast", "outlast-testing", 1),
        ] {
            let found = of(vec![sample(package, &[dependency])], |repo| refused(repo, "test-util"));
            assert_eq!(found.len(), count, "{package} {dependency}: {found:?}");
        }
        let mut unpublished = sample("sim", &["tokio test-util"]);
        unpublished.publish = Some(Vec::new());
        assert_eq!(of(vec![unpublished], |repo| refused(repo, "test-util")), [""; 0]);
        for (default, count) in [("test", 1), ("macros", 0)] {
            let mut facade = sample("outlast", &[]);
            facade.features.insert("default".to_string(), vec![default.to_string()]);
            facade.features.insert("test".to_string(), vec!["testing".to_string()]);
            assert_eq!(of(vec![facade], test_util).len(), count, "{default}");
        }
    }
}
