//! Versions that a release promises: of its dependencies, of its API, and the pages that docs.rs makes of it.

use std::path::Path;
use std::process::{Command, ExitCode};

use outlast_packages::{self as packages, Package, publish};
use outlast_toolkit::{installed, process};

#[derive(clap::Args)]
pub(super) struct SemverArgs {
    /// The commit or tag to compare with; default: the newest tag `v..`
    #[arg(long, value_name = "REVISION")]
    since: Option<String>,
}

/// Compiles the published packages with the oldest versions of their direct dependencies.
///
/// A copy of the repository gets the lock file, so that the lock file of the repository stays.
pub(super) fn minimal() -> Result<ExitCode, String> {
    let folder = process::target().join("minimal-versions");
    let copy = folder.join("source");
    let files: Vec<String> = process::files()?.into_iter().filter(|file| file != "Cargo.lock").collect();
    copy_changed(&files, &process::root(), &copy)?;
    let mut lock = in_copy(&["generate-lockfile", "-Z", "direct-minimal-versions"], &copy);
    // Only cargo resolves with the unstable option. The packages are compiled as a user compiles them.
    lock.env("RUSTC_BOOTSTRAP", "1");
    if !process::stream(lock, |_| {})?.success() {
        return Err(
            "a requirement is older than another package requires, see above: raise it in Cargo.toml"
                .to_string(),
        );
    }
    let all = packages::load()?;
    let mut check = in_copy(&["check", "--locked", "--all-features"], &copy);
    check.args(publish::order(&all)?.iter().flat_map(|package| ["-p", package.name.as_str()]));
    check.env("CARGO_TARGET_DIR", folder.join("target"));
    process::run(&mut check)
}

fn in_copy(args: &[&str], copy: &Path) -> Command {
    let mut command = process::cargo(args);
    command.current_dir(copy);
    command
}

/// Copies files that differ. The other files keep their times, so that cargo compiles little in a second run.
fn copy_changed(files: &[String], from: &Path, to: &Path) -> Result<(), String> {
    for file in files {
        // git lists deleted files too. A link to a licence is copied as the licence.
        let Ok(bytes) = std::fs::read(from.join(file)) else { continue };
        let to = to.join(file);
        if std::fs::read(&to).is_ok_and(|old| old == bytes) {
            continue;
        }
        let folder = to.parent().map_or(Ok(()), std::fs::create_dir_all);
        let written = folder.and_then(|()| std::fs::write(&to, bytes));
        written.map_err(|error| format!("{}: {error}", to.display()))?;
    }
    Ok(())
}

/// Compares the public API of the published libraries with a release. It exits with an error if the version does not say
/// how much changed.
pub(super) fn semver(args: &SemverArgs) -> Result<ExitCode, String> {
    let since = args.since.clone().map_or_else(newest_release, Ok)?;
    let program = installed::cargo_tool("cargo-semver-checks", "^0.51")?;
    let all = packages::load()?;
    let mut command = Command::new(program);
    command.args(["semver-checks", "check-release", "--baseline-rev", &since]).current_dir(process::root());
    command.args(publish::order(&all)?.into_iter().filter(|package| has_api(package)).flat_map(selected));
    process::run(&mut command)
}

/// `cargo semver-checks` reads the API of libraries; that of macros is not in the documentation of rustdoc.
fn has_api(package: &Package) -> bool {
    package.targets.iter().any(cargo_metadata::Target::is_lib)
}

fn selected(package: &Package) -> [&str; 2] {
    ["-p", &package.name]
}

/// The newest tag of a release.
fn newest_release() -> Result<String, String> {
    let mut git = Command::new("git");
    git.args(["tag", "--list", "v[0-9]*", "--sort=-version:refname"]).current_dir(process::root());
    let tags = process::output(&mut git)?;
    tags.lines().next().map(str::to_string).ok_or_else(|| {
        "there is no tag `v..` to compare with: the first release is the baseline; `--since REVISION` compares with any commit"
            .to_string()
    })
}

/// Builds the documentation of each published package in a call of its own, with the options of docs.rs. A build of all
/// packages would unite their features.
pub(super) fn docs_rs() -> Result<ExitCode, String> {
    let all = packages::load()?;
    for package in publish::order(&all)?.into_iter().filter(|package| is_documented(package)) {
        let mut doc = process::cargo(&["doc", "--no-deps", "--all-features", "--lib", "-p", &package.name]);
        doc.env("RUSTDOCFLAGS", "-D warnings --cfg docsrs");
        if !process::stream(doc, |_| {})?.success() {
            return Err(format!("the documentation of {} has warnings, see above", package.name));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn is_documented(package: &Package) -> bool {
    package.targets.iter().any(|target| target.is_lib() || target.is_proc_macro())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_compared_and_macros_are_only_documented() {
        let all = packages::load().unwrap();
        let package = |name: &str| all.iter().find(|package| package.name == name).unwrap();
        assert!(has_api(package("outlast")) && is_documented(package("outlast")));
        assert!(!has_api(package("outlast-macros")) && is_documented(package("outlast-macros")));
        assert!(!has_api(package("outlast-cli")) && !is_documented(package("outlast-cli")));
    }

    #[test]
    fn a_copy_has_new_texts_and_keeps_the_times_of_equal_files() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let files = ["a/same", "a/changed", "gone"].map(str::to_string);
        std::fs::create_dir(from.path().join("a")).unwrap();
        let write = |file: &str, text: &str| std::fs::write(from.path().join(file), text).unwrap();
        let time = |file: &str| std::fs::metadata(to.path().join(file)).unwrap().modified().unwrap();
        write("a/same", "1");
        write("a/changed", "1");
        copy_changed(&files, from.path(), to.path()).unwrap();
        let old = std::time::SystemTime::UNIX_EPOCH;
        for file in &files[..2] {
            std::fs::File::open(to.path().join(file)).unwrap().set_modified(old).unwrap();
        }
        write("a/changed", "2");
        copy_changed(&files, from.path(), to.path()).unwrap();
        assert_eq!(std::fs::read(to.path().join("a/changed")).unwrap(), b"2");
        assert!(time("a/same") == old && time("a/changed") > old);
    }
}
