//! The published packages, the order of their publication, and the problems of their manifests.

use std::collections::BTreeSet;

use cargo_metadata::{Dependency, DependencyKind, Package};

/// The registry refuses a package with more keywords.
const MOST_KEYWORDS: usize = 5;

/// Whether the package is for the registry: its manifest does not say `publish = false`.
pub fn is_published(package: &Package) -> bool {
    package.publish.as_ref().is_none_or(|registries| !registries.is_empty())
}

/// The published packages, each after the packages that it depends on.
pub fn order(packages: &[Package]) -> Result<Vec<&Package>, String> {
    let mut waiting: Vec<&Package> = packages.iter().filter(|package| is_published(package)).collect();
    let mut ordered: Vec<&Package> = Vec::new();
    while !waiting.is_empty() {
        let names: BTreeSet<&str> = waiting.iter().map(|package| package.name.as_str()).collect();
        let is_ready =
            |package: &Package| !named(package).any(|dependency| names.contains(dependency.name.as_str()));
        let (ready, rest): (Vec<&Package>, Vec<&Package>) =
            waiting.iter().copied().partition(|package| is_ready(package));
        if ready.is_empty() {
            let names: Vec<&str> = names.into_iter().collect();
            return Err(format!("these packages depend on each other: {}", names.join(", ")));
        }
        ordered.extend(ready);
        waiting = rest;
    }
    Ok(ordered)
}

/// The dependencies that the published manifest names: cargo removes dev-dependencies without a version.
fn named(package: &Package) -> impl Iterator<Item = &Dependency> {
    package.dependencies.iter().filter(|dependency| {
        dependency.kind != DependencyKind::Development || dependency.req.to_string() != "*"
    })
}

/// The problems of the manifests for the registry or docs.rs, as pairs of a package and a sentence.
pub fn problems(packages: &[Package]) -> Vec<(&Package, String)> {
    let mut problems = Vec::new();
    for package in packages.iter().filter(|package| is_published(package)) {
        let missing = missing(package).map(|field| format!("a published package needs `{field}`"));
        problems.extend(missing.map(|message| (package, message)));
        let wrong = package.dependencies.iter().filter_map(|dependency| wrong(packages, dependency));
        problems.extend(wrong.map(|message| (package, message)));
    }
    problems
}

/// The fields of the manifest that are missing.
fn missing(package: &Package) -> impl Iterator<Item = &'static str> {
    let is_library = package.targets.iter().any(|target| target.is_lib() || target.is_proc_macro());
    let all_features = package.metadata.pointer("/docs/rs/all-features") == Some(&true.into());
    let fields = [
        ("description", package.description.is_some()),
        ("license", package.license.is_some()),
        ("repository", package.repository.is_some()),
        ("readme", package.readme.is_some()),
        ("rust-version", package.rust_version.is_some()),
        ("keywords, at most five", (1..=MOST_KEYWORDS).contains(&package.keywords.len())),
        ("categories", !package.categories.is_empty()),
        ("package.metadata.docs.rs.all-features = true", !is_library || all_features),
    ];
    fields.into_iter().filter(|(_, is_there)| !is_there).map(|(field, _)| field)
}

/// The reason why the published manifest may not have this dependency on a package of the workspace.
fn wrong(packages: &[Package], dependency: &Dependency) -> Option<String> {
    let used = packages.iter().find(|package| package.name.as_str() == dependency.name)?;
    let name = &dependency.name;
    if dependency.kind == DependencyKind::Development {
        let is_path_only = dependency.req.to_string() == "*";
        return (!is_path_only).then(|| {
            format!(
                "the dev-dependency `{name}` has a version: name its path only, so that cargo leaves it out of the published manifest"
            )
        });
    }
    if !is_published(used) {
        return Some(format!("`{name}` is not published"));
    }
    let version = &used.version;
    let is_exact = dependency.req.to_string() == format!("^{version}");
    (!is_exact).then(|| format!("`{name}` is required in the version `{}`, but is {version}", dependency.req))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use serde_json::json;

    fn unpublished(folder: &str) -> Package {
        let mut package = sample(folder, &[]);
        package.publish = Some(Vec::new());
        package
    }

    /// A package with every field.
    fn complete(folder: &str, dependencies: &[&str]) -> Package {
        let mut package = sample(folder, dependencies);
        let text = || Some("x".to_string());
        (package.description, package.license, package.repository) = (text(), text(), text());
        package.readme = Some("README.md".into());
        package.rust_version = Some("1.95.0".parse().unwrap());
        package.keywords = vec!["durable".to_string()];
        package.categories = vec!["asynchronous".to_string()];
        package.targets =
            vec![serde_json::from_value(json!({"name": "x", "kind": ["lib"], "src_path": "x.rs"})).unwrap()];
        package.metadata = json!({"docs": {"rs": {"all-features": true}}});
        package
    }

    fn messages(packages: &[Package]) -> Vec<String> {
        problems(packages)
            .into_iter()
            .map(|(package, message)| format!("{}: {message}", package.name))
            .collect()
    }

    #[test]
    fn packages_follow_their_dependencies_and_unpublished_packages_are_left_out() {
        let packages = [
            sample("author", &["outlast-model ^0.1.0", "outlast dev"]),
            sample("model", &["serde ^1"]),
            sample("outlast", &["outlast-author optional ^0.1.0", "outlast-model ^0.1.0"]),
            unpublished("sim"),
        ];
        let names: Vec<&str> =
            order(&packages).unwrap().iter().map(|package| package.name.as_str()).collect();
        assert_eq!(names, ["outlast-model", "outlast-author", "outlast"]);
        let circle =
            [sample("memory", &["outlast-suite dev ^0.1.0"]), sample("suite", &["outlast-memory ^0.1.0"])];
        assert_eq!(
            order(&circle).unwrap_err(),
            "these packages depend on each other: outlast-memory, outlast-suite"
        );
    }

    #[test]
    fn a_published_manifest_is_complete() {
        assert_eq!(messages(&[complete("model", &[])]), [""; 0]);
        let bare = messages(&[sample("model", &[])]);
        assert_eq!(bare.len(), 7, "{bare:?}");
        let mut wordy = complete("model", &[]);
        wordy.keywords = vec!["x".to_string(); 6];
        wordy.metadata = json!(null);
        assert_eq!(
            messages(&[wordy]),
            [
                "outlast-model: a published package needs `keywords, at most five`",
                "outlast-model: a published package needs `package.metadata.docs.rs.all-features = true`",
            ]
        );
        assert_eq!(messages(&[unpublished("sim")]), [""; 0]);
    }

    #[test]
    fn dependencies_on_this_workspace_have_a_version_and_dev_dependencies_have_none() {
        for (dependency, expected) in [
            ("outlast-model ^0.1.0", ""),
            ("outlast-model dev", ""),
            ("serde dev ^1", ""),
            ("outlast-model", "`outlast-model` is required in the version `*`, but is 0.1.0"),
            ("outlast-model ^0.0.9", "`outlast-model` is required in the version `^0.0.9`, but is 0.1.0"),
            ("outlast-model dev ^0.1.0", "the dev-dependency `outlast-model` has a version"),
            ("outlast-sim ^0.1.0", "`outlast-sim` is not published"),
        ] {
            let packages = [complete("engine", &[dependency]), complete("model", &[]), unpublished("sim")];
            let found = messages(&packages);
            assert_eq!(found.is_empty(), expected.is_empty(), "{dependency}: {found:?}");
            assert!(found.iter().all(|message| message.contains(expected)), "{dependency}: {found:?}");
        }
    }
}
