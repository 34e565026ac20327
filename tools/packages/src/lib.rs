//! The packages of this workspace, their code and their dependencies, from `cargo metadata` and the sources.

pub mod code;
pub mod deny;
pub mod publish;
mod shipped_tokens;
pub mod source;

pub use cargo_metadata::{Dependency, Package};
use cargo_metadata::{DependencyKind, MetadataCommand};
use outlast_toolkit::process;

/// Loads the packages of the workspace, sorted by name.
pub fn load() -> Result<Vec<Package>, String> {
    let mut command = MetadataCommand::new();
    command.manifest_path(process::root().join("Cargo.toml")).no_deps();
    let metadata = command.exec().map_err(|error| format!("`cargo metadata` failed: {error}"))?;
    let mut packages = metadata.packages;
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(packages)
}

/// The path of the manifest, relative to the root, with `/` between the parts.
pub fn manifest(package: &Package) -> String {
    let path = &package.manifest_path;
    path.strip_prefix(process::root()).unwrap_or(path).as_str().replace('\\', "/")
}

/// The name of the package's folder.
pub fn folder(package: &Package) -> &str {
    package.manifest_path.parent().and_then(|folder| folder.file_name()).unwrap_or_default()
}

/// The dependencies of the package that are not for tests, examples and benchmarks only.
pub fn shipped(package: &Package) -> impl Iterator<Item = &Dependency> {
    package.dependencies.iter().filter(|dependency| dependency.kind != DependencyKind::Development)
}

/// The package in `crates/FOLDER`, for tests. A dependency is its name and the words `dev`, `optional`, a version such as `^1` and names of
/// features.
///
/// # Panics
///
/// If a line of a dependency is empty.
#[allow(clippy::unwrap_used, reason = "tests call it")]
pub fn sample(folder: &str, dependencies: &[&str]) -> Package {
    use serde_json::json;
    let dependency = |line: &&str| {
        let mut words: Vec<&str> = line.split(' ').collect();
        let mut has = |word: &str| words.iter().position(|found| *found == word).map(|at| words.remove(at));
        let kind = has("dev");
        let optional = has("optional").is_some();
        let req = words.iter().position(|word| word.starts_with('^')).map_or("*", |at| words.remove(at));
        json!({"name": words[0], "req": req, "kind": kind, "optional": optional, "uses_default_features": true,
            "features": words[1..]})
    };
    let name = if folder == "outlast" { folder.to_string() } else { format!("outlast-{folder}") };
    serde_json::from_value(json!({
        "name": name, "version": "0.1.0", "id": name, "targets": [], "features": {},
        "dependencies": dependencies.iter().map(dependency).collect::<Vec<_>>(),
        "manifest_path": process::root().join("crates").join(folder).join("Cargo.toml"),
    }))
    .unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_of_this_workspace_are_read() {
        let packages = load().unwrap();
        let package = |name: &str| packages.iter().find(|package| package.name == name).unwrap();
        let (facade, store) = (package("outlast"), package("outlast-sqlite"));
        assert_eq!((manifest(facade).as_str(), folder(facade)), ("crates/outlast/Cargo.toml", "outlast"));
        assert!(shipped(facade).all(|dependency| dependency.name != "tokio"));
        let tokio = shipped(store).find(|dependency| dependency.name == "tokio").unwrap();
        assert_eq!(tokio.features, ["sync", "time"]);
    }
}
