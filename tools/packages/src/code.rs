//! Hashes of the shipped code. Comments, documentation, white space and tests do not change them; a token does.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use cargo_metadata::Package;
use outlast_toolkit::process;
use sha2::{Digest as _, Sha256};

use crate::publish::is_published;
use crate::shipped_tokens;
use crate::source::{Source, is_in_module};
use crate::{folder, load};

/// The hashes of the published packages, by the names of their folders.
pub type Hashes = BTreeMap<String, String>;

/// The folders of a package, and its build script, that are compiled into programs of users.
const SHIPPED: [&str; 5] = ["src/", "migrations/", "templates/", "assets/", "build.rs"];

/// The hashes of the working tree.
pub fn of_working_tree() -> Result<Hashes, String> {
    let packages = load()?;
    let root = process::root();
    let paths = process::files()?.into_iter().filter(|path| path.starts_with("crates/"));
    // git lists a deleted file until the deletion is staged.
    let files = paths.filter_map(|path| Some((std::fs::read(root.join(&path)).ok()?, path)));
    let files: Vec<(String, String)> =
        files.map(|(bytes, path)| (path, String::from_utf8(bytes).unwrap_or_default())).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    Ok(hashes(&packages, &files))
}

/// The hashes of the published packages among these, from pairs of a path and a text. The text of a file that is not UTF-8
/// is empty.
pub fn hashes(packages: &[Package], files: &[(&str, &str)]) -> Hashes {
    let published = packages.iter().filter(|package| is_published(package));
    published.map(|package| (folder(package).to_string(), hash(package, files))).collect()
}

/// One hash for all packages.
pub fn total(hashes: &Hashes) -> String {
    digest(hashes.iter().flat_map(|(name, hash)| [name.clone(), hash.clone()]))
}

/// The hash of the shipped code of a package.
fn hash(package: &Package, files: &[(&str, &str)]) -> String {
    let home = format!("crates/{}/", folder(package));
    let own = files.iter().filter_map(|(path, text)| Some((path.strip_prefix(&home)?, *text)));
    let shipped = own.filter(|(path, _)| SHIPPED.iter().any(|folder| path.starts_with(folder)));
    let mut shipped: Vec<(&str, &str)> = shipped.filter(|(path, _)| !path.ends_with(".md")).collect();
    shipped.sort_unstable();
    shipped.dedup();
    let modules = |(path, text): &(&str, &str)| {
        // Most files declare no such module, and need not be parsed for it.
        let source = (path.ends_with(".rs") && text.contains("cfg(")).then(|| Source::parse(text));
        source.map(|source| source.test_modules(path).collect::<Vec<_>>()).unwrap_or_default()
    };
    let tests: Vec<String> = shipped.iter().flat_map(modules).collect();
    let shipped = shipped.iter().filter(|(path, _)| !tests.iter().any(|module| is_in_module(path, module)));
    let features = format!("{:?}", package.features);
    digest(shipped.flat_map(|(path, text)| [(*path).to_string(), tokens(path, text)]).chain([features]))
}

/// The text without the parts that do not change a hash.
fn tokens(path: &str, text: &str) -> String {
    match path.rsplit_once('.') {
        Some((_, "rs")) => shipped_tokens::rust(text),
        Some((_, "sql")) => shipped_tokens::sql(text),
        _ => text.to_string(),
    }
}

/// The first 64 bits of a digest, in hexadecimal digits.
fn digest(texts: impl Iterator<Item = String>) -> String {
    let mut digest = Sha256::new();
    for text in texts {
        digest.update((text.len() as u64).to_be_bytes());
        digest.update(text);
    }
    digest.finalize().iter().take(8).fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    const FILES: [(&str, &str); 5] = [
        ("crates/a/src/lib.rs", "#[cfg(test)]\nmod checks;\npub fn f() {}"),
        ("crates/a/src/checks.rs", "fn test() {}"),
        ("crates/a/src/sql/find.sql", "SELECT 1"),
        ("crates/a/tests/it/main.rs", "fn test() {}"),
        ("crates/b/src/lib.rs", "pub fn g() {}"),
    ];

    /// The hashes after a text was changed.
    fn changed(path: &str, text: &str) -> Hashes {
        let files = FILES.map(|(old, before)| (old, if old == path { text } else { before }));
        assert_ne!(files, FILES);
        hashes(&[sample("a", &[]), sample("b", &[])], &files)
    }

    fn unchanged() -> Hashes {
        hashes(&[sample("a", &[]), sample("b", &[])], &FILES)
    }

    #[test]
    fn comments_and_tests_leave_the_hash() {
        for (path, text) in [
            ("crates/a/src/lib.rs", "//! Text.\n#[cfg(test)] mod checks;\n\npub fn f() { /* none */ }"),
            ("crates/a/src/checks.rs", "fn other() {}"),
            ("crates/a/src/sql/find.sql", "-- Why.\nSELECT  1"),
            ("crates/a/tests/it/main.rs", "fn other() {}"),
        ] {
            assert_eq!(changed(path, text), unchanged(), "{path}");
            assert_eq!(total(&changed(path, text)), total(&unchanged()), "{path}");
        }
    }

    #[test]
    fn a_token_changes_the_hash_of_its_package_and_the_total() {
        for (path, text) in [
            ("crates/a/src/lib.rs", "#[cfg(test)] mod checks; pub fn h() {}"),
            ("crates/a/src/lib.rs", "mod checks; pub fn f() {}"),
            ("crates/a/src/sql/find.sql", "SELECT 2"),
        ] {
            let (now, before) = (changed(path, text), unchanged());
            assert_ne!(now["a"], before["a"], "{text}");
            assert_eq!(now["b"], before["b"], "{text}");
            assert_ne!(total(&now), total(&before), "{text}");
        }
    }

    #[test]
    fn features_count_and_packages_that_are_not_published_do_not() {
        let mut package = sample("a", &[]);
        package.features.insert("extra".to_string(), Vec::new());
        assert_ne!(hashes(&[package.clone()], &FILES)["a"], unchanged()["a"]);
        package.publish = Some(Vec::new());
        assert_eq!(hashes(&[package], &FILES), Hashes::new());
    }

    #[test]
    fn the_packages_of_this_workspace_have_hashes() {
        let hashes = of_working_tree().unwrap();
        assert!(["engine", "sqlite", "outlast"].iter().all(|name| hashes[*name].len() == 16), "{hashes:?}");
        assert!(!hashes.contains_key("sim"));
    }
}
