//! Finds or installs cargo-fuzz, and runs it with the nightly toolchain.

use super::tally::Tally;
use outlast_toolkit::{Stopwatch, installed, process};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(super) struct Tool {
    program: PathBuf,
}

const ASK_FOR_NIGHTLY: &str =
    "the nightly toolchain is needed: `rustup toolchain install nightly --profile minimal`";

impl Tool {
    pub(super) fn find_or_install() -> Result<Self, String> {
        if !installed::succeeds("rustup", &["run", "nightly", "rustc", "--version"]) {
            return Err(ASK_FOR_NIGHTLY.to_string());
        }
        Ok(Self { program: installed::cargo_tool("cargo-fuzz", "^0.13")? })
    }

    /// `cargo-fuzz ACTION` with the nightly toolchain. It uses no sanitizer: the code has no `unsafe`, and SQLite itself is
    /// not tested.
    fn command(&self, action: &str, target: &str) -> Command {
        let mut command = Command::new("rustup");
        command.args(["run", "nightly"]).arg(&self.program).args([action, "--sanitizer", "none", target]);
        command.current_dir(process::root().join("fuzz")).stdin(Stdio::null());
        // `cargo xtask` sets these for its children; they would select the toolchain of the workspace.
        for name in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
            command.env_remove(name);
        }
        command
    }

    /// Runs a target for this time, and counts its executions and crashes.
    pub(super) fn run(&self, target: &str, seconds: u32) -> Result<Tally, String> {
        let mut command = self.command("run", target);
        let time = format!("-max_total_time={seconds}");
        command.args([
            "--",
            &time,
            "-timeout=60",
            "-rss_limit_mb=2048",
            "-malloc_limit_mb=256",
            "-print_final_stats=1",
        ]);
        let mut tally = Tally::default();
        let mut since = None;
        let status = process::stream(command, |line| {
            if line.starts_with('#') {
                since.get_or_insert_with(Stopwatch::start);
            }
            tally.read(line);
        })?;
        // A target that crashed prints no duration.
        if let Some(since) = since.filter(|_| tally.seconds == 0) {
            tally.seconds = since.elapsed().as_secs();
        }
        if !status.success() && tally.crashes == 0 {
            return Err(format!("{target} did not run, see above"));
        }
        Ok(tally)
    }

    /// Keeps the inputs that add coverage, up to [`MOST_INPUTS`] of the smallest, and all inputs that were named by hand.
    pub(super) fn minimise(&self, target: &str) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("the corpus of {target}: {error}");
        let folder = corpus(target);
        let named: Vec<(String, Vec<u8>)> =
            inputs(&folder).map_err(failed)?.into_iter().filter(|(name, _)| !is_digest(name)).collect();
        if !process::stream(self.command("cmin", target), |_| {})?.success() {
            return Err(format!("the corpus of {target} could not be minimised, see above"));
        }
        let mut found = inputs(&folder).map_err(failed)?;
        found.sort_by_key(|(_, input)| input.len());
        for (name, _) in found.into_iter().skip(MOST_INPUTS) {
            std::fs::remove_file(folder.join(name)).map_err(failed)?;
        }
        for (name, input) in named {
            std::fs::write(folder.join(name), input).map_err(failed)?;
        }
        Ok(())
    }

    pub(super) fn corpus_size(&self, target: &str) -> u64 {
        std::fs::read_dir(corpus(target)).map_or(0, |entries| entries.count() as u64)
    }
}

/// The number of inputs of a target in the repository: the tests replay them within a second.
const MOST_INPUTS: usize = 120;

/// Whether libFuzzer chose the name.
fn is_digest(name: &str) -> bool {
    name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn inputs(folder: &Path) -> std::io::Result<Vec<(String, Vec<u8>)>> {
    let entries = std::fs::read_dir(folder)?;
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry?;
        Ok((entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path())?))
    };
    entries.map(read).collect()
}

fn corpus(target: &str) -> PathBuf {
    process::root().join("fuzz/corpus").join(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_libfuzzer_chose_are_digests() {
        assert!(is_digest("7dbfd455d764894bb622f69fa460d7ef21467635"));
        assert!(!is_digest("unreadable-name") && !is_digest("seed-00"));
    }
}
