//! Runs tests that are built once for many mutants. An environment variable selects the mutant.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use serde_json::Value;

use super::listed::Mutant;
use super::outcomes::{CAUGHT, MISSED, Outcomes, TIMEOUT};
use super::sources::{self, Sources};
use super::target::Target;
use super::tool;
use outlast_toolkit::Stopwatch;
use outlast_toolkit::process;

/// The number of mutants that are tested at a time. A mutant that hangs uses no processor.
const AT_A_TIME: usize = 4;
/// A round of tests hangs if it takes longer than this multiple of the longest round without a mutant, and longer than this minimum.
const PATIENCE: u32 = 4;
const LEAST_PATIENCE: Duration = Duration::from_secs(40);

/// The tests of a round that may fail once and then pass, before a failure counts as it is.
const MOST_DOUBTS: u32 = 3;

/// A test program, and its working directory.
pub(super) type Tests = (PathBuf, PathBuf);

/// The messages of cargo about a build of the tests of a target.
pub(super) struct Built {
    pub(super) is_ok: bool,
    pub(super) messages: Vec<Value>,
}

/// Builds the tests of a target in a folder.
pub(super) fn build(target: &Target, root: &Path) -> Result<Built, String> {
    let mut args = vec!["test", "--no-run", "--message-format=json"];
    args.extend(target.tested_by.iter().flat_map(|package| ["-p", package]));
    args.extend(target.built);
    let mut command = process::cargo(&args);
    command.current_dir(root);
    tool::speed_up(&mut command, target);
    let output = command.stderr(Stdio::null()).output();
    let output = output.map_err(|error| format!("cargo could not be run: {error}"))?;
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages = messages.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    Ok(Built { is_ok: output.status.success(), messages })
}

impl Built {
    /// Copies the test programs, so that a later build does not replace them during the run.
    pub(super) fn tests(&self, home: &Path) -> Result<Vec<Tests>, String> {
        let text = |value: &Value| value.as_str().map(PathBuf::from);
        let mut tests = Vec::new();
        // Programs of a package are built along with its tests, and are no tests.
        for message in self.messages.iter().filter(|message| message["profile"]["test"] == true) {
            let (Some(program), Some(manifest)) =
                (text(&message["executable"]), text(&message["manifest_path"]))
            else {
                continue;
            };
            let copy = home.join(format!("tests-{}", tests.len()));
            // A program of an interrupted run may still be running. Its file can be removed, but not be written.
            let _ = std::fs::remove_file(&copy);
            std::fs::copy(&program, &copy).map_err(|error| format!("{}: {error}", program.display()))?;
            tests.push((copy, manifest.parent().unwrap_or(&manifest).to_path_buf()));
        }
        match tests.is_empty() {
            true => Err("no tests were built".to_string()),
            false => Ok(tests),
        }
    }
}

/// Runs all tests for each mutant, with its value of the variable. Each outcome is saved at once.
pub(super) fn judge<V: AsRef<OsStr> + Sync>(
    target: &Target,
    tests: &[Tests],
    variable: &str,
    mutants: &[(&Mutant, V)],
    outcomes: &mut Outcomes,
) -> Result<(), String> {
    has_tests_in_every_round(target, tests)?;
    let known = Sources::read()?;
    let alone = Stopwatch::start();
    let ((outcome, test), longest) = run(target, tests, Duration::from_secs(600), None)?;
    if outcome != MISSED {
        return Err(format!("{}: the tests fail without a mutant: {test}", target.name));
    }
    println!("{}: the tests take {} s without a mutant", target.name, alone.elapsed().as_secs());
    let patience = (longest * PATIENCE).max(LEAST_PATIENCE);
    println!("{}: {} mutants, each round for {} s at most", target.name, mutants.len(), patience.as_secs());
    let (queue, outcomes) = (Mutex::new(mutants.iter()), Mutex::new(outcomes));
    let work = || -> Result<(), String> {
        loop {
            let next = queue.lock().map_err(|_| "a judge has failed")?.next();
            let Some((mutant, value)) = next else { return Ok(()) };
            let ((outcome, test), _) = run(target, tests, patience, Some((variable, value.as_ref())))?;
            println!("{outcome:<9} {} {test}", mutant.name);
            let mut outcomes = outcomes.lock().map_err(|_| "a judge has failed")?;
            match sources::named(&test) {
                Some(name) => outcomes.record_by(mutant.key.clone(), outcome, name, &known),
                None => outcomes.record(mutant.key.clone(), outcome),
            }
            outcomes.save()?;
        }
    };
    std::thread::scope(|scope| {
        let judges: Vec<_> = (0..AT_A_TIME).map(|_| scope.spawn(work)).collect();
        judges
            .into_iter()
            .try_for_each(|judge| judge.join().unwrap_or_else(|_| Err("a judge has failed".into())))
    })
}

/// A filter that selects no test would let every mutant of its round survive unseen.
fn has_tests_in_every_round(target: &Target, tests: &[Tests]) -> Result<(), String> {
    for filter in target.rounds.iter().copied().flatten() {
        let mut is_known = false;
        for (program, folder) in tests {
            let mut command = Command::new(program);
            command.args(["--list", "--format=terse", *filter]).current_dir(folder);
            tool::speed_up(&mut command, target);
            let listed = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
            let listed = listed.map_err(|error| format!("{}: {error}", program.display()))?;
            is_known |= String::from_utf8_lossy(&listed.stdout).lines().any(|line| line.ends_with(": test"));
        }
        if !is_known {
            return Err(format!("{}: no test has `{filter}` in its name: correct target.rs", target.name));
        }
    }
    Ok(())
}

/// Runs the tests until the first failure that repeats itself: a test that fails once on a busy machine has noticed no mutant. Returns
/// the time of the longest round too.
fn run(
    target: &Target,
    tests: &[Tests],
    patience: Duration,
    mutant: Option<(&str, &OsStr)>,
) -> Result<(Verdict, Duration), String> {
    let mut longest = Duration::ZERO;
    let rounds: &[&[&str]] = if target.rounds.is_empty() { &[&[]] } else { target.rounds };
    for (filter, (program, folder)) in
        rounds.iter().flat_map(|round| tests.iter().map(move |tests| (round, tests)))
    {
        let verdict = |arguments: &[&str]| -> Result<Verdict, String> {
            let mut command = Command::new(program);
            command.args(arguments).current_dir(folder);
            tool::speed_up(&mut command, target);
            command.envs(mutant);
            verdict(&mut command, patience).map_err(|error| format!("{}: {error}", program.display()))
        };
        let mut arguments: Vec<String> =
            target.flags.iter().chain(*filter).map(|argument| (*argument).to_string()).collect();
        for doubts in 0.. {
            let round = Stopwatch::start();
            let found = verdict(&arguments.iter().map(String::as_str).collect::<Vec<_>>())?;
            longest = longest.max(round.elapsed());
            match (found.0, sources::named(&found.1)) {
                (MISSED, _) => break,
                (CAUGHT, Some(test)) if doubts < MOST_DOUBTS && verdict(&["--exact", test])?.0 == MISSED => {
                    arguments.push(format!("--skip={test}"));
                }
                _ => return Ok((found, longest)),
            }
        }
    }
    Ok(((MISSED, String::new()), longest))
}

/// An outcome, and the line of the failed test.
type Verdict = (&'static str, String);

/// Reads the output of the tests up to the first failure.
fn verdict(command: &mut Command, patience: Duration) -> io::Result<Verdict> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let (sender, told) = mpsc::channel();
    let reader = child.stdout.take().map(BufReader::new);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut lines = reader.into_iter().flat_map(BufRead::lines).map_while(Result::ok);
            let _ = sender.send(lines.find(|line| line.ends_with("... FAILED")));
        });
        let verdict = match told.recv_timeout(patience) {
            Ok(None) => {
                let status = child.wait()?;
                return Ok(match status.success() {
                    true => (MISSED, String::new()),
                    false => (CAUGHT, status.to_string()),
                });
            }
            Ok(Some(line)) => (CAUGHT, line),
            Err(_) => (TIMEOUT, String::new()),
        };
        // The reader ends with it.
        child.kill()?;
        child.wait()?;
        Ok(verdict)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_decides() {
        let verdict = |script: &str, patience| {
            verdict(Command::new("sh").args(["-c", script]), Duration::from_millis(patience)).unwrap().0
        };
        assert_eq!(verdict("echo test a ... ok", 60_000), MISSED);
        assert_eq!(verdict("echo test a ... ok; exit 101", 60_000), CAUGHT);
        assert_eq!(verdict("echo test a ... FAILED; exec sleep 60", 60_000), CAUGHT);
        assert_eq!(verdict("exec sleep 60", 1), TIMEOUT);
    }
}
