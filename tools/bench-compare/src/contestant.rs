//! Programs that are measured: built by cargo, started once per sample.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use outlast_toolkit::bench_server::base;
use outlast_toolkit::process;

#[derive(Debug, Clone, Copy)]
pub(super) enum Program {
    Outlast,
    /// Hand-written, in the same binary as Outlast.
    Floor,
    Duroxide,
    /// Duroxide on its own store for PostgreSQL.
    DuroxidePg,
    Durare,
    /// dbos on PostgreSQL.
    Dbos,
    /// Outlast with its store for Cosmos DB.
    OutlastCosmos,
    /// Duroxide on its own store for Cosmos DB.
    DuroxideCdb,
    /// The emulated account of Cosmos DB, which counts requests.
    Rig,
}

impl Program {
    /// The arguments of cargo, the name of the binary, and the first argument of the binary.
    fn recipe(self) -> (Vec<String>, &'static str, Option<&'static str>) {
        // The figures on Cosmos DB are counts, which need no optimised build.
        let counted = || {
            let packages = ["build", "--package=outlast-bench", "--package=outlast-cosmos-rig"];
            packages.iter().chain(&["--features=outlast-bench/cosmos"]).map(ToString::to_string).collect()
        };
        let ours = || ["build", "--release", "--package=outlast-bench"].map(str::to_string).to_vec();
        let built = |folder: &str, profile: &str| {
            let mut args = ["build", profile, "--locked"].map(str::to_string).to_vec();
            args.push(format!("--manifest-path=bench/peers/{folder}/Cargo.toml"));
            args.push(format!("--target-dir={}", process::target().join("peers").display()));
            args
        };
        let peer = |folder: &str| built(folder, "--release");
        match self {
            Self::Outlast => (ours(), "outlast-bench", Some("compare")),
            Self::Floor => (ours(), "outlast-bench", Some("floor")),
            Self::Duroxide => (peer("duroxide"), "peer-duroxide", None),
            Self::DuroxidePg => (peer("duroxide-pg"), "peer-duroxide-pg", None),
            Self::Durare => (peer("durare"), "peer-durare", None),
            Self::Dbos => (peer("dbos"), "peer-dbos", None),
            Self::OutlastCosmos => (counted(), "outlast-bench", Some("compare")),
            Self::DuroxideCdb => (built("duroxide-cdb", "--profile=dev"), "peer-duroxide-cdb", None),
            Self::Rig => (counted(), "outlast-cosmos-rig", None),
        }
    }
}

/// The binaries of a run, by the arguments of cargo and their name.
pub(super) struct Contestants(BTreeMap<(Vec<String>, &'static str), PathBuf>);

impl Contestants {
    /// Builds the programs, each once.
    pub(super) fn build(wanted: impl IntoIterator<Item = Program>) -> Result<Self, String> {
        let mut built = BTreeMap::new();
        for program in wanted {
            let (args, name, _) = program.recipe();
            if !built.contains_key(&(args.clone(), name)) {
                let path = build(&args, name)?;
                built.insert((args, name), path);
            }
        }
        Ok(Self(built))
    }

    /// Runs the program and returns its answer. The store is in the folder, or in the database of the variables.
    pub(super) fn measure(
        &self,
        program: Program,
        line: &str,
        folder: &Path,
        variables: &[(&str, String)],
    ) -> Result<Value, String> {
        let (_, _, word) = program.recipe();
        let mut command = Command::new(self.path(program)?);
        command.args(word).args(line.split_whitespace()).arg("--dir").arg(folder);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        measure(command)
    }

    pub(super) fn path(&self, program: Program) -> Result<&Path, String> {
        let (args, name, _) = program.recipe();
        let path = self.0.get(&(args, name)).ok_or_else(|| format!("{program:?} was not built"))?;
        Ok(path)
    }
}

/// Runs `cargo ARGS` and asks it where it put the program.
fn build(args: &[String], name: &str) -> Result<PathBuf, String> {
    let mut command = process::cargo(args);
    println!("$ {}", process::display(&command));
    command.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
    let call = process::display(&command);
    let output = command.output().map_err(|error| format!("`{call}` could not be run: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{call}` failed"));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let program = messages.lines().find_map(|line| executable(line, name));
    program.ok_or_else(|| format!("`{call}` built no program `{name}`"))
}

/// Runs a benchmark and reads its answer. The error has the first line of its stderr.
fn measure(mut command: Command) -> Result<Value, String> {
    // A log of every orchestration would be measured too.
    command.env("RUST_LOG", "error").stdin(Stdio::null());
    let call = process::display(&command);
    let output = command.output().map_err(|error| format!("`{call}` could not be run: {error}"))?;
    match answer(&String::from_utf8_lossy(&output.stdout)) {
        Some(answer) if output.status.success() => Ok(answer),
        _ => {
            let said = String::from_utf8_lossy(&output.stderr);
            let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("no answer");
            Err(format!("`{call}`: {}: {first}", output.status))
        }
    }
}

/// The path in a message of cargo, if it is about this program.
fn executable(message: &str, name: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    (message["target"]["name"] == name).then(|| message["executable"].as_str().map(PathBuf::from))?
}

/// The answer is the last line. Lines of a log come before it.
fn answer(stdout: &str) -> Option<Value> {
    serde_json::from_str(stdout.lines().last()?).ok().filter(Value::is_object)
}

/// A folder for one store.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new() -> Result<Self, String> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = base().join(name);
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self(folder))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("{} could not be removed: {error}", self.0.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_among_the_messages_of_cargo() {
        let message = r#"{"reason":"compiler-artifact","target":{"name":"a"},"executable":"/x/a"}"#;
        assert_eq!(executable(message, "a"), Some(PathBuf::from("/x/a")));
        assert_eq!(executable(message, "b"), None);
        let library = r#"{"reason":"compiler-artifact","target":{"name":"a"},"executable":null}"#;
        assert_eq!(executable(library, "a"), None);
        assert_eq!(executable("not JSON", "a"), None);
    }

    #[test]
    fn the_answer_is_the_last_line() {
        assert_eq!(answer("a log\n{\"a\":1}\n").unwrap()["a"], 1);
        assert_eq!(answer("{\"a\":1}\npanicked\n"), None);
        assert_eq!(answer(""), None);
    }

    #[test]
    fn the_error_of_a_failed_program_contains_its_stderr() {
        let mut cargo = Command::new("cargo");
        cargo.arg("no-such-command");
        let error = measure(cargo).unwrap_err();
        assert!(error.contains("cargo no-such-command") && error.contains("error: "), "{error}");
    }
}
