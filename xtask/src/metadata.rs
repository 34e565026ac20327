//! The packages of this workspace, from `cargo metadata`.

use cargo_metadata::{DependencyKind, MetadataCommand};
use outlast_toolkit::process;

/// A package of the workspace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// The folder of the package, relative to the root, with `/` between the parts.
    pub(crate) dir: String,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) features: Vec<String>,
    /// Another package can depend on this one.
    pub(crate) is_library: bool,
    /// The required features of each example.
    pub(crate) examples: Vec<Vec<String>>,
}

/// A dependency of a package; inherited settings are included.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) features: Vec<String>,
    /// The dependency is for tests, examples and benchmarks only.
    pub(crate) dev: bool,
    /// A feature of the package enables the dependency.
    pub(crate) optional: bool,
}

impl Package {
    pub(crate) fn manifest(&self) -> String {
        format!("{}/Cargo.toml", self.dir)
    }
}

/// Loads the packages of the workspace, sorted by name.
pub(crate) fn load() -> Result<Vec<Package>, String> {
    let mut command = MetadataCommand::new();
    command.manifest_path(process::root().join("Cargo.toml")).no_deps();
    let metadata = command.exec().map_err(|error| format!("`cargo metadata` failed: {error}"))?;
    let folder = |manifest: &cargo_metadata::camino::Utf8Path| {
        let inside = manifest.strip_prefix(&metadata.workspace_root).unwrap_or(manifest);
        inside.parent().map(|folder| folder.as_str().replace('\\', "/")).unwrap_or_default()
    };
    let mut packages: Vec<Package> =
        metadata.packages.iter().map(|package| read(package, folder(&package.manifest_path))).collect();
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(packages)
}

fn read(package: &cargo_metadata::Package, dir: String) -> Package {
    let dependency = |dependency: &cargo_metadata::Dependency| Dependency {
        name: dependency.name.clone(),
        features: dependency.features.clone(),
        dev: dependency.kind == DependencyKind::Development,
        optional: dependency.optional,
    };
    let examples = package.targets.iter().filter(|target| target.is_example());
    Package {
        name: package.name.to_string(),
        dir,
        dependencies: package.dependencies.iter().map(dependency).collect(),
        features: package.features.keys().cloned().collect(),
        is_library: package.targets.iter().any(|target| target.is_lib() || target.is_proc_macro()),
        examples: examples.map(|target| target.required_features.clone()).collect(),
    }
}

#[cfg(test)]
impl Package {
    /// The package in `crates/FOLDER`, with dependencies of these kinds: `""`, `"dev"` or `"optional"`.
    pub(crate) fn of(folder: &str, dependencies: &[(&str, &str)]) -> Self {
        let dependency = |(name, kind): &(&str, &str)| Dependency {
            name: name.to_string(),
            dev: *kind == "dev",
            optional: *kind == "optional",
            ..Dependency::default()
        };
        Self {
            name: if folder == "outlast" { folder.to_string() } else { format!("outlast-{folder}") },
            dir: format!("crates/{folder}"),
            dependencies: dependencies.iter().map(dependency).collect(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_of_this_workspace_are_read() {
        let packages = load().unwrap();
        let package = |name: &str| packages.iter().find(|package| package.name == name).unwrap();
        let facade = package("outlast");
        assert_eq!(facade.manifest(), "crates/outlast/Cargo.toml");
        assert!(facade.is_library && !package("xtask").is_library);
        assert!(facade.features.contains(&"sqlite".to_string()));
        assert!(facade.examples.contains(&vec!["sqlite".to_string()]), "{:?}", facade.examples);
        let tokio: Vec<bool> =
            facade.dependencies.iter().filter(|d| d.name == "tokio").map(|d| d.dev).collect();
        assert_eq!(tokio, [true]);
        let store =
            package("outlast-sqlite").dependencies.iter().find(|d| d.name == "tokio" && !d.dev).unwrap();
        assert_eq!(store.features, ["sync", "time"]);
    }
}
