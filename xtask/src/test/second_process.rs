//! Suites in a second process with low priority.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use outlast_toolkit::{files, installed, process};

use crate::suite::report::Line;

const OUTPUT: &str = "output.log";
const RESULTS: &str = "results.json";

/// A process that runs suites. Its output goes to a file until it has ended.
pub(super) struct SecondProcess {
    child: Child,
    /// Holds the program, its output and its results. Its name has the id of this process and the first suite: neither
    /// another run nor another second process shares it.
    folder: PathBuf,
}

impl SecondProcess {
    pub(super) fn start(suites: &[&str]) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| format!("the path of xtask: {error}"))?;
        // The process runs a copy: its cargo commands may build xtask again.
        let first = suites.first().unwrap_or(&"none");
        let folder = process::target().join(format!("second-process-{}-{first}", std::process::id()));
        let copy = folder.join(program.file_name().unwrap_or_default());
        let made = std::fs::create_dir_all(&folder).and_then(|()| std::fs::copy(&program, &copy));
        made.map_err(|error| format!("{}: {error}", copy.display()))?;
        let results = folder.join(RESULTS).display().to_string();
        let args = ["test", "--only", &suites.join(","), "--results", &results];
        println!("\n=== at the same time, with low priority: {} ===", suites.join(", "));
        Self::spawn(&copy, &args, &folder)
    }

    fn spawn(program: &Path, args: &[&str], folder: &Path) -> Result<Self, String> {
        let log = folder.join(OUTPUT);
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
        Ok(Self { child, folder: folder.to_path_buf() })
    }

    /// Waits for the process, prints its output, and returns its results, which must be those of `suites`.
    pub(super) fn finish(mut self, suites: &[&str]) -> Result<Vec<Line>, String> {
        let status = self.child.wait().map_err(|error| format!("the second process: {error}"))?;
        let log = std::fs::read(self.folder.join(OUTPUT)).unwrap_or_default();
        println!("\n=== output of {} ===\n{}", suites.join(", "), String::from_utf8_lossy(&log).trim());
        let results = files::read(&self.folder.join(RESULTS))
            .map_err(|_| format!("the second process ended with {status} and without results"))?;
        let lines: Vec<Line> = serde_json::from_str(&results)
            .map_err(|error| format!("the results of the second process: {error}"))?;
        let found: Vec<&str> = lines.iter().map(|line| line.suite.as_str()).collect();
        let has_failed = lines.iter().any(|line| line.outcome.counts().1 > 0);
        if found != suites || has_failed == status.success() {
            return Err(format!("the second process ended with {status} and results of {found:?}"));
        }
        Ok(lines)
    }
}

impl Drop for SecondProcess {
    /// Stops the process if this process ends early. The end of a finished process is not an error.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str) -> Result<Vec<Line>, String> {
        let folder = tempfile::tempdir().unwrap();
        let script = script.replace("FILE", &folder.path().join("results.json").display().to_string());
        SecondProcess::spawn(Path::new("sh"), &["-c", &script], folder.path())?.finish(&["docs"])
    }

    #[test]
    fn results_of_the_second_process_are_returned() {
        let line = r#"{"suite":"docs","outcome":{"Ran":{"passed":1,"failed":2,"runs":3,"skipped":{"a":4},"lacking":[],"failures":["b"]}},"time":{"secs":5,"nanos":0}}"#;
        let lines = run(&format!("echo '[{line}]' > FILE; exit 1")).unwrap();
        assert_eq!((lines[0].suite.as_str(), lines[0].outcome.counts()), ("docs", (1, 2, 4)));
        assert_eq!(lines[0].time.as_secs(), 5);
    }

    #[test]
    fn results_that_contradict_the_exit_status_or_the_suites_are_errors() {
        let line = r#"{"suite":"NAME","outcome":{"Ran":{"passed":1,"failed":0,"runs":0,"skipped":{},"lacking":[],"failures":[]}},"time":{"secs":5,"nanos":0}}"#;
        let run_with = |name: &str, code: i32| {
            run(&format!("echo '[{}]' > FILE; exit {code}", line.replace("NAME", name)))
        };
        assert!(run_with("docs", 0).is_ok());
        assert!(run_with("docs", 1).is_err());
        assert!(run_with("sim", 0).is_err());
    }

    #[test]
    fn a_process_without_results_is_an_error() {
        assert!(run("exit 3").unwrap_err().contains("exit status: 3"));
        assert!(run("echo broken > FILE").is_err());
    }
}
