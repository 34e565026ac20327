//! Every package inherits the lints of the workspace. One of them forbids `unsafe`.
//!
//! A forbidden lint cannot be allowed in a file. The package with C bindings therefore repeats the lints with `deny` for
//! `unsafe_code`, and the table `refused` names the only file that may allow it.

use crate::metadata;
use crate::tidy::repo::{Finding, Repo};

/// The manifest of the package with `unsafe` code.
const UNSAFE: &str = "crates/chaos/Cargo.toml";

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let lints = |path: &str, parent: &str| {
        let manifest: toml::Table =
            repo.file(path).and_then(|file| file.text.parse().ok()).unwrap_or_default();
        let table = if parent.is_empty() { Some(&manifest) } else { manifest.get(parent)?.as_table() };
        table?.get("lints").cloned()
    };
    let inherited: toml::Value = toml::Table::from_iter([("workspace".to_string(), true.into())]).into();
    let mut repeated = lints("Cargo.toml", "workspace");
    if let Some(level) = repeated.as_mut().and_then(|lints| lints.get_mut("rust")?.get_mut("unsafe_code")) {
        *level = "deny".into();
    }
    let mut findings = Vec::new();
    for path in repo.packages.iter().map(metadata::manifest) {
        let own = lints(&path, "");
        if own.as_ref() != Some(&inherited) && (path != UNSAFE || own.is_none() || own != repeated) {
            let message = format!(
                "the package must inherit the lints: `[lints] workspace = true`; only {UNSAFE} repeats them, \
                 with `unsafe_code = \"deny\"`"
            );
            findings.push(Finding { path, line: 1, message });
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_inherits_the_lints_or_repeats_them() {
        let workspace = "[workspace.lints.rust]\nunsafe_code = \"forbid\"\nmissing_docs = \"warn\"";
        for (folder, manifest, count) in [
            ("a", "[package]\nname = \"a\"", 1),
            ("a", "[lints.rust]\nunsafe_code = \"allow\"\n[features]\nworkspace = true", 1),
            ("a", "[lints.rust]\nunsafe_code = \"deny\"\nmissing_docs = \"warn\"", 1),
            ("a", "[package]\nname = \"a\"\n\n[lints]\nworkspace = true", 0),
            ("a", "lints.workspace = true\n[package]\nname = \"a\"", 0),
            ("chaos", "[lints.rust]\nunsafe_code = \"deny\"\nmissing_docs = \"warn\"", 0),
            ("chaos", "[lints.rust]\nunsafe_code = \"allow\"\nmissing_docs = \"warn\"", 1),
            ("chaos", "[lints.rust]\nunsafe_code = \"deny\"", 1),
            ("chaos", "[package]\nname = \"outlast-chaos\"", 1),
            ("chaos", "[lints]\nworkspace = true", 0),
        ] {
            let path = format!("crates/{folder}/Cargo.toml");
            let mut repo = Repo::of(&[("Cargo.toml", workspace), (&path, manifest)]);
            repo.packages = vec![metadata::sample(folder, &[])];
            assert_eq!(check(&repo).len(), count, "{folder}: {manifest}");
        }
    }
}
