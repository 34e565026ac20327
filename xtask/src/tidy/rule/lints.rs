//! Every package inherits the lints of the workspace; among them is the one that forbids `unsafe`.
//!
//! What is forbidden cannot be allowed further in. The one package that speaks C repeats the lints with `deny` for this one, and
//! may allow it in one file.

use crate::tidy::manifest;
use crate::tidy::repo::{Finding, Repo};

/// The manifest of the package with `unsafe` code, and the file that holds all of it.
const UNSAFE: (&str, &str) = ("crates/chaos/Cargo.toml", "crates/chaos/src/power/vfs.rs");

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let manifests = repo.packages.iter().map(crate::metadata::Package::manifest);
    let deaf = manifests.filter(|path| !repo.file(path).is_some_and(|file| inherits(&file.text)));
    let (speaks_c, deaf): (Vec<String>, Vec<String>) = deaf.partition(|path| path == UNSAFE.0);
    let message = "the package must inherit the lints: `[lints] workspace = true`";
    let deaf = deaf.into_iter().map(|path| Finding { path, line: 1, message: message.to_string() });
    let mut findings: Vec<Finding> = deaf.collect();
    if !speaks_c.is_empty() {
        findings.extend(differs(repo));
    }
    findings.extend(unsafe_elsewhere(repo));
    findings
}

/// The package that speaks C has every lint of the workspace at its level, but for the one.
fn differs(repo: &Repo) -> Vec<Finding> {
    let text = |path: &str| repo.file(path).map_or("", |file| file.text.as_str());
    let own = manifest::entries(text(UNSAFE.0));
    let workspace = manifest::entries(text("Cargo.toml"));
    let wanted = workspace.iter().filter_map(|entry| {
        let table = entry.table.strip_prefix("workspace.").filter(|table| table.starts_with("lints."))?;
        let value = if entry.key == "unsafe_code" { "\"deny\"" } else { entry.value };
        Some((table, entry.key, value))
    });
    let missing = wanted
        .filter(|wanted| !own.iter().any(|entry| (entry.table.as_str(), entry.key, entry.value) == *wanted));
    missing
        .map(|(table, key, value)| Finding {
            path: UNSAFE.0.to_string(),
            line: 1,
            message: format!("the lints of the workspace must be repeated: `[{table}] {key} = {value}`"),
        })
        .collect()
}

fn unsafe_elsewhere(repo: &Repo) -> Vec<Finding> {
    let folder = UNSAFE.0.trim_end_matches("Cargo.toml");
    let rust =
        repo.with_extension("rs").filter(|file| file.path.starts_with(folder) && file.path != UNSAFE.1);
    let lines =
        rust.flat_map(|file| file.text.lines().zip(1..).map(move |(line, number)| (file, line, number)));
    lines
        .filter(|(_, line, _)| line.contains("unsafe_code"))
        .map(|(file, _, line)| Finding {
            path: file.path.clone(),
            line,
            message: format!("`unsafe` code belongs in {} alone", UNSAFE.1),
        })
        .collect()
}

fn inherits(manifest: &str) -> bool {
    manifest::entries(manifest)
        .iter()
        .any(|entry| (entry.table.as_str(), entry.key, entry.value) == ("lints", "workspace", "true"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Package;

    fn findings(manifest: &str) -> usize {
        let mut repo = Repo::of(&[("crates/a/Cargo.toml", manifest)]);
        repo.packages = vec![Package { dir: "crates/a".to_string(), ..Package::default() }];
        check(&repo).len()
    }

    #[test]
    fn a_package_with_lints_of_its_own_is_refused() {
        assert_eq!(findings("[package]\nname = \"a\""), 1);
        assert_eq!(findings("[lints.rust]\nunsafe_code = \"allow\"\n[features]\nworkspace = true"), 1);
    }

    #[test]
    fn the_package_that_speaks_c_repeats_the_lints() {
        let workspace = "[workspace.lints.rust]\nunsafe_code = \"forbid\"\nmissing_docs = \"warn\"";
        let findings = |manifest: &str| {
            let mut repo = Repo::of(&[("Cargo.toml", workspace), (UNSAFE.0, manifest)]);
            repo.packages = vec![Package { dir: "crates/chaos".to_string(), ..Package::default() }];
            check(&repo).len()
        };
        assert_eq!(findings("[lints.rust]\nunsafe_code = \"deny\"\nmissing_docs = \"warn\""), 0);
        assert_eq!(findings("[lints.rust]\nunsafe_code = \"allow\"\nmissing_docs = \"warn\""), 1);
        assert_eq!(findings("[package]\nname = \"outlast-chaos\""), 2);
        assert_eq!(findings("[lints]\nworkspace = true"), 0);
    }

    #[test]
    fn one_file_may_be_unsafe() {
        let allow = "#![allow(unsafe_code)]";
        assert_eq!(check(&Repo::of(&[(UNSAFE.1, allow), ("crates/sim/src/a.rs", allow)])).len(), 0);
        assert_eq!(check(&Repo::of(&[("crates/chaos/src/power/disk.rs", allow)])).len(), 1);
    }

    #[test]
    fn both_ways_to_inherit_are_fine() {
        assert_eq!(findings("[package]\nname = \"a\"\n\n[lints]\nworkspace = true"), 0);
        assert_eq!(findings("lints.workspace = true\n[package]\nname = \"a\""), 0);
    }
}
