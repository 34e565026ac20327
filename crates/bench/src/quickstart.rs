//! `cargo xtask bench quickstart`: from a clone of this repository to the page of the demo, with a build from nothing.

use crate::api::Http;
use crate::verdict::{self, Verdict};
use outlast_toolkit::{Stopwatch, process};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// The command fails above this time.
const MOST: Duration = Duration::from_secs(300);
/// A build without a word for this time is stopped.
const SILENCE: Duration = Duration::from_secs(1_800);
/// The longest time between the address and the first answer.
const ANSWER: Duration = Duration::from_secs(60);

/// The times of the steps, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Steps {
    clone: f64,
    build: f64,
    page: f64,
}

/// The process of the demo. It ends with the value.
struct Demo(Child);

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Clones the newest commit into a temporary folder and runs the command of the front page there. The download of the dependencies does
/// not count, because it depends on the network.
///
/// Returns whether the page answered in time.
pub(crate) fn run() -> Result<bool, String> {
    process::output(&mut process::cargo(&["fetch", "--locked"]))?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let steps = measure(&process::root(), folder.path())?;
    Ok(verdict::print(&[of(steps)]))
}

fn of(steps: Steps) -> Verdict {
    let Steps { clone, build, page } = steps;
    let all = clone + build + page;
    Verdict {
        holds: all <= MOST.as_secs_f64(),
        text: format!(
            "clone to dashboard: {all:.0} s (clone {clone:.1} s, build {build:.0} s, page {page:.1} s; at most {} s)",
            MOST.as_secs()
        ),
    }
}

fn measure(repository: &Path, folder: &Path) -> Result<Steps, String> {
    let clone = folder.join("outlast");
    let watch = Stopwatch::start();
    process::output(Command::new("git").args(["clone", "--quiet"]).arg(repository).arg(&clone))?;
    let cloned = watch.elapsed().as_secs_f64();
    // A build from nothing: neither the target folder nor the flags of the caller.
    let mut command = process::cargo(&["run", "--release", "--", "demo", "--port", "0"]);
    command.current_dir(&clone).env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS");
    println!("{}", process::display(&command));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut demo = Demo(child.map_err(|error| format!("cargo could not be run: {error}"))?);
    let out = demo.0.stdout.take().ok_or("the demo has no output")?;
    let host = address(BufReader::new(out), SILENCE)?;
    let built = watch.elapsed().as_secs_f64();
    let asked = Stopwatch::start();
    while Http::open(&host).and_then(|mut http| http.get("/demo")).is_err() {
        if asked.elapsed() > ANSWER {
            return Err(format!("the page at {host} did not answer"));
        }
        std::thread::yield_now();
    }
    let all = watch.elapsed().as_secs_f64();
    Ok(Steps { clone: cloned, build: built - cloned, page: all - built })
}

/// The host and port of the page, from the output of the demo. The output is read on, because the demo ends when it cannot write.
fn address(out: impl BufRead + Send + 'static, silence: Duration) -> Result<String, String> {
    let (sender, lines) = mpsc::channel();
    let read = move || {
        for line in out.lines().map_while(Result::ok) {
            // Without a receiver the lines are dropped.
            let _ = sender.send(line);
        }
    };
    std::thread::Builder::new().spawn(read).map_err(|error| error.to_string())?;
    let mut said = String::new();
    loop {
        let line = lines.recv_timeout(silence).map_err(|_| format!("the demo named no page: {said}"))?;
        if let Some((_, rest)) = line.split_once("http://")
            && let Some((host, _)) = rest.split_once("/demo")
        {
            return Ok(host.to_string());
        }
        said.push_str(&line);
        said.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn address_is_that_of_the_line_with_the_page() {
        let out = "Batch 1: 12 orders\nWatch it at http://127.0.0.1:41234/demo (also over SSH)\n";
        assert_eq!(address(Cursor::new(out), SILENCE).as_deref(), Ok("127.0.0.1:41234"));
    }

    #[test]
    fn demo_that_ends_without_a_page_is_an_error_with_its_output() {
        let error = address(Cursor::new("error: no space\n"), SILENCE).unwrap_err();
        assert!(error.contains("named no page") && error.contains("no space"), "{error}");
    }

    #[test]
    fn time_above_five_minutes_is_missed() {
        let steps = |build| Steps { clone: 1.0, build, page: 0.5 };
        assert!(of(steps(298.0)).holds && !of(steps(299.0)).holds);
    }
}
