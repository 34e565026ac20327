//! A package depends only on the packages that the table in this file allows. ARCHITECTURE.md draws the dependencies that exist.
//!
//! Tests may use every package, so dev-dependencies are not checked.

use std::collections::BTreeSet;

use crate::metadata::Package;
use crate::tidy::manifest;
use crate::tidy::repo::{Finding, Repo};

/// The packages that a package may depend on, by the names of their folders.
enum May {
    Use(&'static [&'static str]),
    UseAll,
}
use May::{Use, UseAll};

/// The folder of a package, and the packages of this workspace that it may depend on.
const TABLE: &[(&str, May)] = &[
    ("model", Use(&[])),
    ("engine", Use(&["model"])),
    ("lens", Use(&["model"])),
    ("provider", Use(&["model"])),
    ("provider-kit", Use(&["model", "provider"])),
    ("memory", Use(&["model", "provider"])),
    ("sqlite", Use(&["model", "provider", "provider-kit"])),
    ("postgres", Use(&["model", "provider", "provider-kit"])),
    ("cosmos", Use(&["model", "provider", "provider-kit"])),
    // The validations of `race_replay` run turns of the engine one by one. Other stores are compared with `memory`.
    ("conformance", Use(&["model", "provider", "engine", "memory", "runtime"])),
    ("runtime", Use(&["model", "engine", "lens", "provider", "memory"])),
    ("macros", Use(&[])),
    ("author", Use(&["model", "engine", "provider", "runtime", "macros"])),
    ("testing", Use(&["model", "engine", "provider", "memory", "runtime", "author", "conformance"])),
    // The tutorial uses only the packages that a store outside of this repository can use.
    ("tutorial", Use(&["provider", "provider-kit"])),
    ("outlast", Use(LIBRARIES)),
    ("server", Use(&["outlast"])),
    ("cli", Use(&["outlast", "server"])),
    ("testkit", Use(&["provider"])),
    ("cosmos-rig", Use(&["model"])),
    ("sim", UseAll),
    ("fuzz", UseAll),
    ("chaos", UseAll),
    ("bench", UseAll),
    ("compat", UseAll),
    ("xtask", UseAll),
    ("toolkit", Use(&[])),
    ("mutants", Use(&["toolkit"])),
    ("bench-compare", Use(&["toolkit"])),
];

/// The packages that the facade re-exports.
const LIBRARIES: &[&str] = &[
    "model",
    "engine",
    "lens",
    "provider",
    "provider-kit",
    "memory",
    "sqlite",
    "postgres",
    "cosmos",
    "conformance",
    "runtime",
    "macros",
    "author",
    "testing",
];

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
        if let Some((_, Use(allowed))) = TABLE.iter().find(|(name, _)| *name == folder) {
            findings.extend(unwanted(repo, package, folder, allowed));
        }
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
    let unknown = folders.into_iter().filter(|(_, folder)| !TABLE.iter().any(|(name, _)| name == folder));
    unknown
        .map(|(parent, folder)| Finding {
            path: format!("{parent}/{folder}/Cargo.toml"),
            line: 1,
            message: format!("`{folder}` has no row in the table of dependencies: add it in {}", file!()),
        })
        .collect()
}

fn unwanted(repo: &Repo, package: &Package, folder: &str, allowed: &[&str]) -> Vec<Finding> {
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
    use crate::metadata::Dependency;
    use crate::tidy::repo::printed;

    fn package(folder: &str, dependencies: &[(&str, bool)]) -> Package {
        let dependency = |(name, dev): &(&str, bool)| Dependency {
            name: name.to_string(),
            dev: *dev,
            ..Dependency::default()
        };
        Package {
            name: package_name(folder),
            dir: format!("crates/{folder}"),
            dependencies: dependencies.iter().map(dependency).collect(),
            ..Package::default()
        }
    }

    #[test]
    fn a_dependency_that_the_table_lacks_is_refused() {
        let text = "[dependencies]\nserde = \"1\"\noutlast-runtime.workspace = true\n";
        let mut repo = Repo::of(&[("crates/engine/Cargo.toml", text)]);
        repo.packages = vec![package(
            "engine",
            &[("serde", false), ("outlast-model", false), ("outlast-runtime", false)],
        )];
        let expected =
            ["crates/engine/Cargo.toml:3: `engine` may not depend on `outlast-runtime`; allowed: model"];
        assert_eq!(printed(check(&repo)), expected);
    }

    #[test]
    fn dev_dependencies_are_not_checked() {
        let mut repo = Repo::of(&[]);
        repo.packages =
            vec![package("sqlite", &[("outlast-provider-kit", false), ("outlast-conformance", true)])];
        assert_eq!(printed(check(&repo)), [""; 0]);
    }

    #[test]
    fn the_facade_may_use_libraries_but_not_programs() {
        let mut repo = Repo::of(&[]);
        repo.packages = vec![package("outlast", &[("outlast-sqlite", false), ("outlast-cli", false)])];
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

    #[test]
    fn every_allowed_package_has_a_row() {
        for (_, may) in TABLE {
            let Use(allowed) = may else { continue };
            assert!(allowed.iter().all(|folder| TABLE.iter().any(|(name, _)| name == folder)), "{allowed:?}");
        }
    }
}
