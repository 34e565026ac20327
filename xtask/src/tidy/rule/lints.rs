//! Every package inherits the lints of the workspace; among them is the one that forbids `unsafe`.

use crate::tidy::manifest;
use crate::tidy::repo::{Finding, Repo};

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let manifests = repo.packages.iter().map(crate::metadata::Package::manifest);
    let deaf = manifests.filter(|path| !repo.file(path).is_some_and(|file| inherits(&file.text)));
    let message = "the package must inherit the lints: `[lints] workspace = true`";
    deaf.map(|path| Finding { path, line: 1, message: message.to_string() }).collect()
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
    fn both_ways_to_inherit_are_fine() {
        assert_eq!(findings("[package]\nname = \"a\"\n\n[lints]\nworkspace = true"), 0);
        assert_eq!(findings("lints.workspace = true\n[package]\nname = \"a\""), 0);
    }
}
