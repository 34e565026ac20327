//! Suites in a second process with low priority.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use outlast_toolkit::{files, installed, process};
use tempfile::TempDir;

use crate::suite::report::Line;

const OUTPUT: &str = "output.log";
const RESULTS: &str = "results.json";

/// A process that runs suites. Its output goes to a file until it has ended.
pub(super) struct SecondProcess {
    child: Child,
    /// Holds the program, its output and its results.
    folder: TempDir,
}

impl SecondProcess {
    /// Starts a copy of this program with the suites.
    pub(super) fn start(suites: &[&str]) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| format!("the path of xtask: {error}"))?;
        // The process runs a copy: its cargo commands may build xtask again.
        let folder = tempfile::Builder::new().prefix("second-process-").tempdir_in(process::target());
        let folder = folder.map_err(|error| format!("a folder for the second process: {error}"))?;
        let copy = folder.path().join(program.file_name().unwrap_or_default());
        std::fs::copy(&program, &copy).map_err(|error| format!("{}: {error}", copy.display()))?;
        let results = folder.path().join(RESULTS).display().to_string();
        let args = ["test", "--only", &suites.join(","), "--results", &results];
        println!("\n=== at the same time, with low priority: {} ===", suites.join(", "));
        Self::spawn(&copy, &args, folder)
    }

    /// Starts a program with low priority, whose output goes to a file of the folder.
    fn spawn(program: &Path, args: &[&str], folder: TempDir) -> Result<Self, String> {
        let log = folder.path().join(OUTPUT);
        let output = File::create(&log).and_then(|file| Ok((file.try_clone()?, file)));
        let (stdout, stderr) = output.map_err(|error| format!("{}: {error}", log.display()))?;
        let mut command = Command::new(program);
        if installed::succeeds("nice", &["-n", "19", "true"]) {
            command = Command::new("nice");
            command.args(["-n", "19"]).arg(program);
        }
        command.args(args).stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        println!("its output until it ends: {}", log.display());
        let child = command.spawn().map_err(|error| format!("`{}`: {error}", process::display(&command)))?;
        Ok(Self { child, folder })
    }

    /// Waits for the process, prints its output, and returns its results, which must be those of `suites`.
    pub(super) fn finish(mut self, suites: &[&str]) -> Result<Vec<Line>, String> {
        let status = self.child.wait().map_err(|error| format!("the second process: {error}"))?;
        let log = std::fs::read(self.folder.path().join(OUTPUT)).unwrap_or_default();
        println!("\n=== output of {} ===\n{}", suites.join(", "), String::from_utf8_lossy(&log).trim());
        let results = files::read(&self.folder.path().join(RESULTS))
            .map_err(|_| format!("the second process ended with {status} and without results"))?;
        let lines: Vec<Line> = serde_json::from_str(&results)
            .map_err(|error| format!("the results of the second process: {error}"))?;
        let found: Vec<&str> = lines.iter().map(|line| line.suite.as_str()).collect();
        let has_failed = lines.iter().any(|line| !line.tally.failures.is_empty());
        if found != suites || has_failed == status.success() {
            return Err(format!("the second process ended with {status} and results of {found:?}"));
        }
        Ok(lines)
    }
}

impl Drop for SecondProcess {
    /// Stops the process if this process ends early. The end of a finished process is no error.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str) -> Result<Vec<Line>, String> {
        let folder = tempfile::tempdir().unwrap();
        let script = script.replace("FILE", &folder.path().join("results.json").display().to_string());
        SecondProcess::spawn(Path::new("sh"), &["-c", &script], folder)?.finish(&["docs"])
    }

    #[test]
    fn results_that_agree_with_the_suites_and_the_exit_status_are_returned() {
        let run_with = |suite: &str, failures: &str, code: i32| {
            let tally = format!(
                r#"{{"passed":1,"runs":3,"skipped":{{"a":4}},"lacking":[],"failures":[{failures}]}}"#
            );
            let line = format!(r#"{{"suite":"{suite}","tally":{tally},"time":{{"secs":5,"nanos":0}}}}"#);
            run(&format!("echo '[{line}]' > FILE; exit {code}"))
        };
        let lines = run_with("docs", "\"b\"", 1).unwrap();
        assert_eq!((lines[0].suite.as_str(), lines[0].tally.counts()), ("docs", (1, 1, 4)));
        assert_eq!(lines[0].time.as_secs(), 5);
        assert!(run_with("docs", "", 0).is_ok());
        assert!(run_with("docs", "", 1).is_err());
        assert!(run_with("docs", "\"b\"", 0).is_err());
        assert!(run_with("sim", "", 0).is_err());
    }

    #[test]
    fn a_process_without_results_is_an_error() {
        assert!(run("exit 3").unwrap_err().contains("exit status: 3"));
        assert!(run("echo broken > FILE").is_err());
    }
}
