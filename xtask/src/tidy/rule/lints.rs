//! Every package inherits the lints of the workspace. One of them forbids `unsafe`.
//!
//! A forbidden lint cannot be allowed in a file. The package with C bindings therefore repeats the lints with `deny` for
//! `unsafe_code`, and may allow it in one file.

use crate::tidy::manifest;
use crate::tidy::repo::{Finding, Repo};

/// The manifest of the package with `unsafe` code, and the only file with such code.
const UNSAFE: (&str, &str) = ("crates/chaos/Cargo.toml", "crates/chaos/src/power/vfs.rs");

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let manifests = repo.packages.iter().map(crate::metadata::Package::manifest);
    let inherits = |path: &String| repo.file(path).is_some_and(|file| manifest::inherits_lints(&file.text));
    let (exempt, without): (Vec<String>, Vec<String>) =
        manifests.filter(|path| !inherits(path)).partition(|path| path == UNSAFE.0);
    let message = "the package must inherit the lints: `[lints] workspace = true`";
    let without = without.into_iter().map(|path| Finding { path, line: 1, message: message.to_string() });
    let mut findings: Vec<Finding> = without.collect();
    if !exempt.is_empty() {
        findings.extend(differs(repo));
    }
    findings.extend(unsafe_elsewhere(repo));
    findings
}

/// The lints of the workspace that the package with C bindings does not repeat.
fn differs(repo: &Repo) -> Vec<Finding> {
    let text = |path: &str| repo.file(path).map_or("", |file| file.text.as_str());
    let own = manifest::lints(text(UNSAFE.0), &["lints"]);
    let wanted = manifest::lints(text("Cargo.toml"), &["workspace", "lints"]).into_iter();
    let wanted = wanted.map(|(tool, name, level)| match name.as_str() {
        "unsafe_code" => (tool, name, "deny".to_string()),
        _ => (tool, name, level),
    });
    wanted
        .filter(|lint| !own.contains(lint))
        .map(|(tool, name, level)| Finding {
            path: UNSAFE.0.to_string(),
            line: 1,
            message: format!("the package must repeat the lint `[lints.{tool}] {name} = \"{level}\"`"),
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
    fn a_package_with_separate_lints_is_refused() {
        assert_eq!(findings("[package]\nname = \"a\""), 1);
        assert_eq!(findings("[lints.rust]\nunsafe_code = \"allow\"\n[features]\nworkspace = true"), 1);
    }

    #[test]
    fn the_package_with_c_bindings_repeats_the_lints() {
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
    fn unsafe_code_is_allowed_in_one_file() {
        let allow = "#![allow(unsafe_code)]";
        assert_eq!(check(&Repo::of(&[(UNSAFE.1, allow), ("crates/sim/src/a.rs", allow)])).len(), 0);
        assert_eq!(check(&Repo::of(&[("crates/chaos/src/power/disk.rs", allow)])).len(), 1);
    }

    #[test]
    fn both_forms_of_inheritance_are_accepted() {
        assert_eq!(findings("[package]\nname = \"a\"\n\n[lints]\nworkspace = true"), 0);
        assert_eq!(findings("lints.workspace = true\n[package]\nname = \"a\""), 0);
    }
}
