//! The tests, programs and examples of the workspace, which are built with one set of features for all suites.
//!
//! Another selection of packages or features would compile most of the dependencies again.

use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use cargo_metadata::{Artifact, Message};
use outlast_toolkit::process;

use super::{Tally, features};

/// An executable file that cargo built.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    /// The folder of the package. Cargo runs tests in it.
    pub(super) folder: PathBuf,
    /// The name of the test, program or example.
    pub(super) name: String,
    /// The arguments of `cargo test` that select this program: `-p outlast-sqlite --test it`.
    pub(super) selector: String,
    is_test: bool,
}

const WORKSPACE: [&str; 2] = ["--workspace", "--all-features"];

/// The suite `build`: builds all programs that the other suites run, before the two groups of suites start.
pub(super) fn run() -> Result<Tally, String> {
    let mut tally = Tally::default();
    // The build of the tests replaces the file of this program, and tests run it.
    chaos()?;
    for programs in [built_with_tests()?, examples()?] {
        println!("{} program(s)", programs.len());
        tally.check("cargo built no program", !programs.is_empty());
    }
    Ok(tally)
}

/// The unit tests and integration tests. The first call builds them.
pub(super) fn tests() -> Result<Vec<Program>, String> {
    Ok(built_with_tests()?.into_iter().filter(|program| program.is_test).collect())
}

/// The unit tests and integration tests of some packages.
pub(super) fn tests_of(packages: &[impl AsRef<str>]) -> Result<Vec<Program>, String> {
    let mut args = vec!["test", "--no-run", "--all-features", "--lib", "--bins", "--tests"];
    args.extend(packages.iter().flat_map(|package| ["-p", package.as_ref()]));
    Ok(build(&args)?.into_iter().filter(|program| program.is_test).collect())
}

/// `outlast-chaos` with the features that applications have: a killed worker runs without the hooks of tests.
pub(super) fn chaos() -> Result<Program, String> {
    static BUILT: OnceLock<Result<Program, String>> = OnceLock::new();
    BUILT.get_or_init(build_chaos).clone()
}

/// Builds `outlast-chaos`, and copies the program so that a later build does not replace it.
fn build_chaos() -> Result<Program, String> {
    let with = ["-p", features::MACRO_FEATURES, "-p", features::DEPENDENCY_FEATURES];
    let built = build(&[&["build", "-p", "outlast-chaos"], &with[..]].concat())?;
    let found = built.into_iter().find(|program| program.name == "outlast-chaos");
    let mut program = found.ok_or("the workspace has no program `outlast-chaos`")?;
    let folder = process::target().join("chaos");
    let copy = folder.join("outlast-chaos");
    let copied = std::fs::create_dir_all(&folder).and_then(|()| std::fs::copy(&program.path, &copy));
    copied.map_err(|error| format!("{}: {error}", copy.display()))?;
    program.path = copy;
    Ok(program)
}

fn built_with_tests() -> Result<Vec<Program>, String> {
    static BUILT: OnceLock<Result<Vec<Program>, String>> = OnceLock::new();
    let args = ["test", "--no-run", "--lib", "--bins", "--tests"];
    BUILT.get_or_init(|| build(&[&args[..], &WORKSPACE].concat())).clone()
}

/// The examples of all packages.
pub(super) fn examples() -> Result<Vec<Program>, String> {
    static BUILT: OnceLock<Result<Vec<Program>, String>> = OnceLock::new();
    BUILT.get_or_init(|| build(&[&["build", "--examples"][..], &WORKSPACE].concat())).clone()
}

/// Runs cargo and returns the executable files.
pub(super) fn build(args: &[&str]) -> Result<Vec<Program>, String> {
    let mut command = process::cargo(args);
    println!("$ {}", process::display(&command));
    command.arg("--message-format=json-render-diagnostics").stdout(Stdio::piped());
    let call = process::display(&command);
    let failed = |error: std::io::Error| format!("`{call}` could not be run: {error}");
    let mut child = command.spawn().map_err(failed)?;
    let stdout = child.stdout.take().map(BufReader::new);
    let mut programs = Vec::new();
    for message in stdout.into_iter().flat_map(Message::parse_stream) {
        if let Message::CompilerArtifact(artifact) = message.map_err(failed)? {
            programs.extend(read(&artifact));
        }
    }
    match child.wait().map_err(failed)?.success() {
        true => Ok(programs),
        false => Err(format!("`{call}` failed: the errors of the compiler are printed above")),
    }
}

/// The program of an artifact; `None` for an artifact without an executable file.
fn read(artifact: &Artifact) -> Option<Program> {
    let path = artifact.executable.as_ref()?.into();
    let folder: PathBuf = artifact.manifest_path.parent()?.into();
    let target = &artifact.target;
    let flag = match () {
        () if target.is_test() => format!("--test {}", target.name),
        () if target.is_bin() => format!("--bin {}", target.name),
        () if target.is_example() => format!("--example {}", target.name),
        () => "--lib".to_string(),
    };
    Some(Program {
        path,
        name: target.name.clone(),
        selector: format!("-p {} {flag}", package_name(&artifact.package_id.repr)),
        folder,
        is_test: artifact.profile.test,
    })
}

/// The name in a package id: `path+file:///folder#name@0.1.0`, or `path+file:///name#0.1.0`.
fn package_name(id: &str) -> &str {
    let (path, after) = id.rsplit_once('#').unwrap_or((id, id));
    let name = after.split_once('@').map(|(name, _)| name);
    name.or(path.rsplit('/').next()).unwrap_or(after)
}

impl Program {
    /// A command that runs the program in the same way as cargo does.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder).stdin(Stdio::null());
        // Panics keep their backtraces. The Cosmos DB SDK would capture one for each error value.
        command.env("RUST_LIB_BACKTRACE", "0");
        command
    }
}

#[cfg(test)]
impl Program {
    pub(super) fn sample(path: &str, selector: &str) -> Self {
        let [name, selector] = [path, selector].map(str::to_string);
        Self { path: path.into(), folder: ".".into(), name, selector, is_test: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn artifact(kind: &str, test: bool) -> Artifact {
        serde_json::from_value(json!({
            "package_id": "path+file:///x/crates/sqlite#outlast-sqlite@0.1.0",
            "manifest_path": "/x/crates/sqlite/Cargo.toml",
            "target": {"kind": [kind], "crate_types": ["bin"], "name": "it", "src_path": "/x/it.rs", "edition": "2024"},
            "profile": {"opt_level": "0", "debuginfo": 1, "debug_assertions": true, "overflow_checks": true, "test": test},
            "features": [], "filenames": [], "executable": "/x/target/debug/deps/it-1", "fresh": true,
        }))
        .unwrap()
    }

    #[test]
    fn an_artifact_with_an_executable_file_is_a_program() {
        let program = read(&artifact("test", true)).unwrap();
        assert_eq!(program.selector, "-p outlast-sqlite --test it");
        assert_eq!(program.folder, PathBuf::from("/x/crates/sqlite"));
        assert!(program.is_test);
        assert_eq!(read(&artifact("lib", true)).unwrap().selector, "-p outlast-sqlite --lib");
        let binary = read(&artifact("bin", false)).unwrap();
        assert!(!binary.is_test && binary.selector == "-p outlast-sqlite --bin it");
        let mut library = artifact("lib", false);
        library.executable = None;
        assert!(read(&library).is_none());
    }

    #[test]
    fn the_package_name_is_read_from_both_forms_of_an_id() {
        assert_eq!(package_name("path+file:///x/sqlite#outlast-sqlite@0.1.0"), "outlast-sqlite");
        assert_eq!(package_name("path+file:///x/outlast#0.1.0"), "outlast");
    }
}
