//! The second lane: suites in a second process with low priority.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use outlast_toolkit::{files, installed, process};

use crate::suite::report::Line;

/// A process that runs suites. Its output goes to a file until it has ended.
pub(super) struct SecondLane {
    child: Child,
    log: PathBuf,
    results: PathBuf,
}

impl SecondLane {
    pub(super) fn start<'a>(suites: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| format!("the path of xtask: {error}"))?;
        // The process runs a copy: its cargo commands may build xtask again.
        let folder = process::target().join("second-lane");
        let copy = folder.join(program.file_name().unwrap_or_default());
        let made = std::fs::create_dir_all(&folder).and_then(|()| std::fs::copy(&program, &copy));
        made.map_err(|error| format!("{}: {error}", copy.display()))?;
        let names: Vec<&str> = suites.collect();
        let results = folder.join("results.json");
        let args = ["test", "--only", &names.join(","), "--results", &results.display().to_string()];
        println!("\n=== at the same time, with low priority: {} ===", names.join(", "));
        Self::spawn(&copy, &args, &folder)
    }

    fn spawn(program: &Path, args: &[&str], folder: &Path) -> Result<Self, String> {
        let (log, results) = (folder.join("output.log"), folder.join("results.json"));
        let _ = std::fs::remove_file(&results);
        let output = File::create(&log).and_then(|file| Ok((file.try_clone()?, file)));
        let (stdout, stderr) = output.map_err(|error| format!("{}: {error}", log.display()))?;
        let mut command = match installed::succeeds("nice", &["-n", "19", "true"]) {
            true => Command::new("nice"),
            false => Command::new(program),
        };
        if command.get_program() == "nice" {
            command.args(["-n", "19"]).arg(program);
        }
        command.args(args).stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        println!("its output until it ends: {}", log.display());
        let child = command.spawn().map_err(|error| format!("`{}`: {error}", process::display(&command)))?;
        Ok(Self { child, log, results })
    }

    /// Waits for the process, prints its output, and returns its results.
    pub(super) fn finish(mut self) -> Result<Vec<Line>, String> {
        let status = self.child.wait().map_err(|error| format!("the second lane: {error}"))?;
        println!("\n=== output of the second lane ===\n{}", files::read(&self.log)?.trim());
        let results =
            files::read(&self.results).map_err(|_| format!("the second lane ended with {status}"))?;
        serde_json::from_str(&results).map_err(|error| format!("{}: {error}", self.results.display()))
    }
}

impl Drop for SecondLane {
    /// Stops the process if this process ends early. The end of a finished process is not an error.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(script: &str) -> Result<Vec<Line>, String> {
        let folder = tempfile::tempdir().unwrap();
        let script = script.replace("FILE", &folder.path().join("results.json").display().to_string());
        SecondLane::spawn(Path::new("sh"), &["-c", &script], folder.path())?.finish()
    }

    #[test]
    fn results_of_the_second_process_are_returned() {
        let line = r#"{"suite":"docs","outcome":{"Ran":{"passed":1,"failed":2,"runs":3,"skipped":{"a":4},"lacking":[],"failures":["b"]}},"time":{"secs":5,"nanos":0}}"#;
        let lines = lane(&format!("echo '[{line}]' > FILE; exit 1")).unwrap();
        assert_eq!((lines[0].suite.as_str(), lines[0].outcome.counts()), ("docs", (1, 2, 4)));
        assert_eq!(lines[0].time.as_secs(), 5);
    }

    #[test]
    fn a_process_without_results_is_an_error() {
        assert!(lane("exit 3").unwrap_err().contains("exit status: 3"));
        assert!(lane("echo broken > FILE").is_err());
    }
}
