//! The manifests of published packages are complete, and `rust-toolchain.toml` selects the Rust version that they state.

use crate::metadata::{self, publish};
use crate::tidy::repo::{Finding, Repo};

const TOOLCHAIN: &str = "rust-toolchain.toml";

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let problems = publish::problems(&repo.packages).into_iter();
    let on_manifest = |(package, message)| Finding { path: metadata::manifest(package), line: 1, message };
    let circle = publish::order(&repo.packages).err();
    let circle = circle.map(|message| Finding { path: "Cargo.toml".to_string(), line: 1, message });
    problems.map(on_manifest).chain(circle).chain(toolchain(repo)).collect()
}

/// The whole check runs with the toolchain of the file: it proves the stated version only if both are the same.
fn toolchain(repo: &Repo) -> Option<Finding> {
    let file = repo.file(TOOLCHAIN)?;
    let table: toml::Table = file.text.parse().unwrap_or_default();
    let channel = table.get("toolchain").and_then(|table| table.get("channel")?.as_str()).unwrap_or_default();
    let stated = repo.packages.iter().filter_map(|package| package.rust_version.as_ref()).max()?;
    (stated.to_string() != channel).then(|| {
        file.finding(1, format!("`channel` is `{channel}`, but packages state the Rust version {stated}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::repo::printed;

    #[test]
    fn incomplete_manifests_and_another_toolchain_are_reported() {
        let mut repo = Repo::of(&[(TOOLCHAIN, "[toolchain]\nchannel = \"1.95.0\"\n")]);
        repo.packages = vec![metadata::sample("model", &[])];
        let findings = printed(check(&repo));
        assert!(
            findings.contains(&"crates/model/Cargo.toml:1: a published package needs `readme`".to_string()),
            "{findings:?}"
        );
        repo.packages[0].publish = Some(Vec::new());
        assert_eq!(printed(check(&repo)), [""; 0]);
        repo.packages[0].rust_version = Some("1.90.0".parse().unwrap());
        assert_eq!(
            printed(check(&repo)),
            ["rust-toolchain.toml:1: `channel` is `1.95.0`, but packages state the Rust version 1.90.0"]
        );
    }
}
