//! Who may know whom: the arrows of ARCHITECTURE.md.
//!
//! Tests may know everybody, so dev-dependencies are free.

use std::collections::BTreeSet;

use crate::metadata::Package;
use crate::tidy::manifest;
use crate::tidy::repo::{Finding, Repo};

/// What a crate may depend on, by folder name.
enum May {
    Know(&'static [&'static str]),
    KnowAnybody,
}
use May::{Know, KnowAnybody};

/// A crate, and the crates of this workspace that it may depend on.
const TABLE: &[(&str, May)] = &[
    ("model", Know(&[])),
    ("engine", Know(&["model"])),
    ("provider", Know(&["model"])),
    ("provider-kit", Know(&["model", "provider"])),
    ("memory", Know(&["model", "provider"])),
    ("sqlite", Know(&["model", "provider", "provider-kit"])),
    ("postgres", Know(&["model", "provider", "provider-kit"])),
    ("cosmos", Know(&["model", "provider", "provider-kit"])),
    // The engine too: `race_replay` runs its turns one by one, which no runtime lets it do. And the specification: other
    // stores are compared with it.
    ("conformance", Know(&["model", "provider", "engine", "memory", "runtime"])),
    ("runtime", Know(&["model", "engine", "provider", "memory"])),
    ("macros", Know(&[])),
    ("testing", Know(&["model", "engine", "provider", "memory", "runtime"])),
    // What its readers may know: a store of their own has no other crates of this workspace.
    ("tutorial", Know(&["provider", "provider-kit"])),
    ("outlast", Know(LIBRARIES)),
    ("server", Know(&["outlast"])),
    ("cli", Know(&["outlast", "server"])),
    ("testkit", Know(&["provider"])),
    ("sim", KnowAnybody),
    ("fuzz", KnowAnybody),
    ("chaos", KnowAnybody),
    ("bench", KnowAnybody),
    ("compat", KnowAnybody),
    ("xtask", KnowAnybody),
];

/// What the facade re-exports from.
const LIBRARIES: &[&str] = &[
    "model",
    "engine",
    "provider",
    "provider-kit",
    "memory",
    "sqlite",
    "postgres",
    "cosmos",
    "conformance",
    "runtime",
    "macros",
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
        if let Some((_, Know(allowed))) = TABLE.iter().find(|(name, _)| *name == folder) {
            findings.extend(unwanted(repo, package, folder, allowed));
        }
    }
    findings
}

fn unknown_folders(repo: &Repo) -> Vec<Finding> {
    let inside = repo.files.iter().filter_map(|file| file.path.strip_prefix("crates/")?.split_once('/'));
    let folders: BTreeSet<&str> = inside.map(|(folder, _)| folder).collect();
    let unknown = folders.into_iter().filter(|folder| !TABLE.iter().any(|(name, _)| name == folder));
    unknown
        .map(|folder| Finding {
            path: format!("crates/{folder}/Cargo.toml"),
            line: 1,
            message: format!("nobody decided what `{folder}` may know: add it to the table in {}", file!()),
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
            let may = if allowed.is_empty() { "nobody".to_string() } else { allowed.join(", ") };
            let message = format!("`{folder}` may not depend on `{}`; it may know: {may}", dependency.name);
            Finding { path: package.manifest(), line: line_of(repo, package, &dependency.name), message }
        })
        .collect()
}

/// The line of the manifest that names a dependency.
pub(super) fn line_of(repo: &Repo, package: &Package, dependency: &str) -> usize {
    let text = repo.file(&package.manifest()).map_or("", |file| file.text.as_str());
    let named = |tables: &str| {
        manifest::dependencies(text, tables)
            .into_iter()
            .find(|(_, name, _)| name == dependency)
            .map(|(line, ..)| line)
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
    fn an_arrow_that_nobody_drew_is_refused() {
        let text = "[dependencies]\nserde = \"1\"\noutlast-runtime.workspace = true\n";
        let mut repo = Repo::of(&[("crates/engine/Cargo.toml", text)]);
        repo.packages = vec![package(
            "engine",
            &[("serde", false), ("outlast-model", false), ("outlast-runtime", false)],
        )];
        let expected =
            ["crates/engine/Cargo.toml:3: `engine` may not depend on `outlast-runtime`; it may know: model"];
        assert_eq!(printed(check(&repo)), expected);
    }

    #[test]
    fn dev_dependencies_are_free() {
        let mut repo = Repo::of(&[]);
        repo.packages =
            vec![package("sqlite", &[("outlast-provider-kit", false), ("outlast-conformance", true)])];
        assert_eq!(printed(check(&repo)), [""; 0]);
    }

    #[test]
    fn the_facade_may_know_libraries_but_not_tools() {
        let mut repo = Repo::of(&[]);
        repo.packages = vec![package("outlast", &[("outlast-sqlite", false), ("outlast-cli", false)])];
        assert_eq!(check(&repo).len(), 1);
    }

    #[test]
    fn a_new_folder_must_be_decided_about() {
        let repo = Repo::of(&[
            ("crates/misc/src/lib.rs", ""),
            ("crates/misc/Cargo.toml", ""),
            ("crates/model/a", ""),
        ]);
        let findings = printed(check(&repo));
        assert_eq!(findings.len(), 1);
        assert!(
            findings[0].contains("`misc`") && findings[0].contains("add it to the table"),
            "{findings:?}"
        );
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
    fn the_table_names_only_crates_that_it_has() {
        for (_, may) in TABLE {
            let Know(allowed) = may else { continue };
            assert!(allowed.iter().all(|folder| TABLE.iter().any(|(name, _)| name == folder)), "{allowed:?}");
        }
    }
}
