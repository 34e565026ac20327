//! A package depends only on the packages that the table `edges` allows. ARCHITECTURE.md draws the dependencies that exist.
//!
//! Tests may use every package, so dev-dependencies are not checked.

use std::collections::BTreeSet;

use crate::metadata::Package;
use crate::tidy::manifest;
use crate::tidy::repo::{Finding, Repo};
use crate::tidy::tables::PATH;

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let mut findings = unknown_folders(repo);
    for package in &repo.packages {
        let folder = package.dir.rsplit('/').next().unwrap_or_default();
        let expected = package_name(folder);
        if package.name != expected {
            let message =
                format!("the package in `{}` is named `{}`, not `{expected}`", package.dir, package.name);
            findings.push(Finding { path: package.manifest(), line: 1, message });
        }
        let allowed = repo.tables.edges.get(folder).filter(|allowed| !allowed.iter().any(|name| name == "*"));
        findings.extend(allowed.into_iter().flat_map(|allowed| unwanted(repo, package, folder, allowed)));
    }
    findings
}

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

fn unwanted(repo: &Repo, package: &Package, folder: &str, allowed: &[String]) -> Vec<Finding> {
    let ours = |name: &str| name.starts_with("outlast") || repo.packages.iter().any(|p| p.name == name);
    let may = |name: &str| allowed.iter().any(|folder| package_name(folder) == name);
    let shipped = package.dependencies.iter().filter(|dependency| !dependency.dev);
    let unwanted = shipped.filter(|dependency| ours(&dependency.name) && !may(&dependency.name));
    unwanted
        .map(|dependency| {
            let may = if allowed.is_empty() { "none".to_string() } else { allowed.join(", ") };
            let message = format!("`{folder}` may not depend on `{}`; allowed: {may}", dependency.name);
            Finding { path: package.manifest(), line: line_of(repo, package, &dependency.name), message }
        })
        .collect()
}

/// The line of the manifest that names a dependency.
pub(super) fn line_of(repo: &Repo, package: &Package, dependency: &str) -> usize {
    let text = repo.file(&package.manifest()).map_or("", |file| file.text.as_str());
    let named = |table: &str| {
        let mut declared = manifest::dependencies(text, table).into_iter();
        declared.find(|declared| declared.name == dependency).map(|declared| declared.line)
    };
    named("dependencies").or_else(|| named("build-dependencies")).unwrap_or(1)
}

fn package_name(folder: &str) -> String {
    match folder {
        "outlast" | "xtask" => folder.to_string(),
        _ => format!("outlast-{folder}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::repo::printed;

    #[test]
    fn a_dependency_that_the_table_lacks_is_refused() {
        let text = "[dependencies]\nserde = \"1\"\noutlast-runtime.workspace = true\n";
        let mut repo = Repo::of(&[("crates/engine/Cargo.toml", text)]);
        repo.packages =
            vec![Package::of("engine", &[("serde", ""), ("outlast-model", ""), ("outlast-runtime", "")])];
        let expected =
            ["crates/engine/Cargo.toml:3: `engine` may not depend on `outlast-runtime`; allowed: model"];
        assert_eq!(printed(check(&repo)), expected);
    }

    #[test]
    fn dev_dependencies_are_not_checked() {
        let mut repo = Repo::of(&[]);
        repo.packages =
            vec![Package::of("sqlite", &[("outlast-provider-kit", ""), ("outlast-conformance", "dev")])];
        assert_eq!(printed(check(&repo)), [""; 0]);
    }

    #[test]
    fn the_facade_may_use_libraries_but_not_programs() {
        let mut repo = Repo::of(&[]);
        repo.packages = vec![Package::of("outlast", &[("outlast-sqlite", ""), ("outlast-cli", "")])];
        assert_eq!(check(&repo).len(), 1);
    }

    #[test]
    fn a_folder_without_a_row_is_refused() {
        let repo = Repo::of(&[
            ("crates/misc/src/lib.rs", ""),
            ("crates/misc/Cargo.toml", ""),
            ("crates/model/a", ""),
            ("tools/other/src/main.rs", ""),
            ("tools/README.md", ""),
        ]);
        let findings = printed(check(&repo));
        assert_eq!(findings.len(), 2);
        assert!(findings[0].starts_with("crates/misc/Cargo.toml:1: `misc` has no row"), "{findings:?}");
        assert!(findings[1].starts_with("tools/other/Cargo.toml:1: `other` has no row"), "{findings:?}");
    }

    #[test]
    fn a_package_is_named_after_its_folder() {
        let mut repo = Repo::of(&[]);
        repo.packages = vec![Package {
            name: "model".to_string(),
            dir: "crates/model".to_string(),
            ..Package::default()
        }];
        assert_eq!(check(&repo).len(), 1);
    }
}
