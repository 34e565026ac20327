//! What `cargo metadata` knows about the packages of this workspace.

use serde_json::Value;

use crate::process;

/// A package of the workspace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Its folder, relative to the root, with `/` between the parts.
    pub(crate) dir: String,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) features: Vec<String>,
    pub(crate) targets: Vec<Target>,
}

/// A line of a `[dependencies]` table; inherited settings are merged in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) features: Vec<String>,
    /// Only for tests, examples and benchmarks.
    pub(crate) dev: bool,
}

/// A thing that cargo builds from a package.
#[derive(Debug, Clone, Default)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kinds: Vec<String>,
    pub(crate) required_features: Vec<String>,
}

impl Package {
    pub(crate) fn manifest(&self) -> String {
        format!("{}/Cargo.toml", self.dir)
    }

    /// Whether another package could depend on it.
    pub(crate) fn is_library(&self) -> bool {
        let library = ["lib", "rlib", "dylib", "cdylib", "staticlib", "proc-macro"];
        self.targets.iter().any(|target| target.kinds.iter().any(|kind| library.contains(&kind.as_str())))
    }
}

/// The packages of the workspace, by name.
pub(crate) fn load() -> Result<Vec<Package>, String> {
    let mut command = process::cargo(&["metadata", "--no-deps", "--format-version", "1"]);
    let call = process::display(&command);
    let output = command.output().map_err(|error| format!("`{call}` could not be run: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{call}` failed:\n{}", String::from_utf8_lossy(&output.stderr).trim_end()));
    }
    let json = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("`{call}` printed something that is not JSON: {error}"))?;
    Ok(packages(&json))
}

fn packages(json: &Value) -> Vec<Package> {
    let root = text(json, "workspace_root");
    let mut packages: Vec<Package> = list(json, "packages")
        .map(|package| Package {
            name: text(package, "name"),
            dir: folder(&root, &text(package, "manifest_path")),
            dependencies: list(package, "dependencies").map(dependency).collect(),
            features: package["features"]
                .as_object()
                .into_iter()
                .flat_map(|map| map.keys().cloned())
                .collect(),
            targets: list(package, "targets").map(target).collect(),
        })
        .collect();
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    packages
}

fn dependency(json: &Value) -> Dependency {
    Dependency {
        name: text(json, "name"),
        features: strings(json, "features"),
        dev: json["kind"].as_str() == Some("dev"),
    }
}

fn target(json: &Value) -> Target {
    Target {
        name: text(json, "name"),
        kinds: strings(json, "kind"),
        required_features: strings(json, "required-features"),
    }
}

fn folder(root: &str, manifest: &str) -> String {
    let inside = manifest.strip_prefix(root).unwrap_or(manifest).replace('\\', "/");
    inside.trim_start_matches('/').trim_end_matches("Cargo.toml").trim_end_matches('/').to_string()
}

fn text(json: &Value, key: &str) -> String {
    json[key].as_str().unwrap_or_default().to_string()
}

fn list<'a>(json: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    json[key].as_array().into_iter().flatten()
}

fn strings(json: &Value, key: &str) -> Vec<String> {
    list(json, key).filter_map(Value::as_str).map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_read_into_packages() {
        let json = serde_json::json!({
            "workspace_root": "/a/b",
            "packages": [{
                "name": "outlast-model",
                "manifest_path": "/a/b/crates/model/Cargo.toml",
                "features": {"default": [], "extra": []},
                "dependencies": [
                    {"name": "serde", "kind": null, "features": ["derive"]},
                    {"name": "proptest", "kind": "dev", "features": []},
                ],
                "targets": [
                    {"name": "outlast_model", "kind": ["lib"]},
                    {"name": "hello", "kind": ["example"], "required-features": ["extra"]},
                ],
            }],
        });
        let packages = packages(&json);
        let package = &packages[0];
        assert_eq!(package.manifest(), "crates/model/Cargo.toml");
        assert!(package.is_library());
        assert_eq!(package.features, ["default", "extra"]);
        assert_eq!(package.dependencies.iter().map(|d| d.dev).collect::<Vec<_>>(), [false, true]);
        assert_eq!(package.dependencies[0].features, ["derive"]);
        assert_eq!(package.targets[1].required_features, ["extra"]);
    }
}
