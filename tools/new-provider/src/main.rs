//! `cargo xtask new-provider NAME`: writes a new crate for a store.
//!
//! The crate compiles, and its tests are the validation suite: each validation fails with the name of the first missing
//! method that it calls.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool prints to its terminal")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use outlast_toolkit::files::{read, write};
use outlast_toolkit::process;

/// The files of the crate. The names `template-store`, `TemplateStore` and `OUTLAST` in them are replaced.
const FILES: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("../../../crates/tutorial/template/Cargo.toml.in")),
    ("src/lib.rs", include_str!("../../../crates/tutorial/template/src/lib.rs")),
    ("src/provider.rs", include_str!("../../../crates/tutorial/template/src/provider.rs")),
    ("src/admin.rs", include_str!("../../../crates/tutorial/template/src/admin.rs")),
    ("src/tests.rs", include_str!("../../../crates/tutorial/template/src/tests.rs")),
    (".github/workflows/contract.yml", include_str!("../../../crates/tutorial/template/contract.yml")),
    (".gitignore", "/target\n"),
];

/// Writes a crate in which every method answers "not implemented", and whose tests are the validation suite.
/// docs/provider-tutorial.md has the order in which to write the methods.
#[derive(Parser)]
#[command(name = "new-provider", bin_name = "cargo xtask new-provider")]
struct Args {
    /// The name of the crate: lower-case words with hyphens, for example `my-store`
    name: String,
    /// The parent folder of the crate; default: the folder that contains this clone
    #[arg(long = "in", value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

fn main() -> ExitCode {
    let Args { name, folder } = Args::parse();
    let root = process::root();
    let folder = folder.as_deref().unwrap_or_else(|| root.parent().unwrap_or(&root));
    match create(&name, folder, &root) {
        Ok(target) => {
            println!("wrote {0}\nnext: cd {0} && cargo test", target.display());
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("new-provider: {message}");
            ExitCode::from(2)
        }
    }
}

/// Writes the crate and returns its folder.
fn create(name: &str, folder: &Path, root: &Path) -> Result<PathBuf, String> {
    let store = type_name(name)?;
    let target = folder.join(name);
    if target.exists() {
        return Err(format!("{} exists already: choose another name or folder", target.display()));
    }
    for (path, text) in FILES {
        let text = text.replace("template-store", name).replace("TemplateStore", &store);
        write(&target.join(path), &text.replace("OUTLAST", &root.display().to_string()))?;
    }
    // The same versions of the dependencies as in this repository.
    write(&target.join("Cargo.lock"), &read(&root.join("Cargo.lock"))?)?;
    Ok(target)
}

/// `my-store` becomes `MyStore`.
fn type_name(name: &str) -> Result<String, String> {
    let is_part = |part: &str| {
        part.starts_with(|char: char| char.is_ascii_lowercase())
            && part.chars().all(|char| char.is_ascii_lowercase() || char.is_ascii_digit())
    };
    if !name.split('-').all(is_part) {
        return Err(format!(
            "`{name}` cannot be the name of a crate: use lower-case words with hyphens, as in `my-store`"
        ));
    }
    let capital = |part: &str| part[..1].to_uppercase() + &part[1..];
    Ok(name.split('-').map(capital).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Does not apply to a store that does not wait or show pending work, or to a factory that cannot damage queues.
    const NOT_APPLICABLE: &[&str] = &[
        "dead_letters::",
        "pending::",
        "requeues::a_requeue_ends_the_wait",
        "waiting::",
        "dropped_fetch::many_dropped_waits_take_no_item",
        "dropped_fetch::an_item_for_a_dropped_fetch_is_not_lost",
        "leases::a_lease_starts_when_the_item_is_claimed",
        "leases::a_session_lease_starts_when_the_session_is_claimed",
        "long_polling::test_long_poll_waits_for_timeout",
        "long_polling::test_long_poll_work_item_waits_for_timeout",
    ];

    #[test]
    fn names_become_type_names_or_are_refused() {
        assert_eq!(type_name("my-store").unwrap(), "MyStore");
        assert_eq!(type_name("redis7").unwrap(), "Redis7");
        for name in ["", "My", "a--b", "-a", "7a", "a_b", "../a", "a/b"] {
            assert!(type_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn an_existing_folder_is_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("mine")).unwrap();
        let error = create("mine", folder.path(), &process::root()).unwrap_err();
        assert!(error.contains("exists already"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path().join("mine")).unwrap().count(), 0);
    }

    /// The output of the tests of a new crate, and what the compiler said.
    fn tested() -> (String, String) {
        let folder = tempfile::tempdir().unwrap();
        let created = create("my-store", folder.path(), &process::root()).unwrap();
        // The derive macros are not compiled again for another set of features of `syn`.
        let shared = process::root().join("tools/macro-features");
        let dependency = format!("\n[build-dependencies]\noutlast-macro-features.path = {shared:?}\n");
        let manifest = created.join("Cargo.toml");
        write(&manifest, &(read(&manifest).unwrap() + &dependency)).unwrap();
        let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_path_buf();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["test", "--offline", "--lib"]).current_dir(&created).env("CARGO_TARGET_DIR", target);
        // As in the profile of this workspace: dependencies with the same features are not compiled again.
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").env("RUST_BACKTRACE", "0");
        let output = cargo.output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    #[test]
    fn a_new_provider_compiles_and_fails_the_suite_where_methods_are_missing() {
        let (printed, said) = tested();
        let results = printed
            .lines()
            .filter_map(|line| line.strip_prefix("test tests::contract::")?.split_once(" ... "));
        let results: Vec<(&str, &str)> = results.collect();
        assert!(results.len() > 300, "{said}\n{printed}");
        assert!(!said.contains("warning: unused"), "{said}");
        for (name, result) in results {
            let head = format!("---- tests::contract::{name} stdout ----");
            let text =
                printed.split_once(&head).map_or("", |(_, rest)| rest.split("\n---- ").next().unwrap());
            let passed = result == "ok";
            let missing = text.contains("not implemented") || text.contains("does not implement corrupt_");
            assert!(passed || missing, "{name} fails for another reason: {text}");
            let applies = !NOT_APPLICABLE.iter().any(|start| name.starts_with(start));
            assert_eq!(passed, !applies, "{name}: {text}");
        }
    }
}
