//! The emulated account of Cosmos DB: a process of its own, so that it counts the requests of all processes of a run.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A rig without data. It ends when the value is dropped.
pub(super) struct Rig {
    process: Child,
    variables: Vec<(&'static str, String)>,
}

impl Rig {
    /// Starts the rig, and reads the address and the key that the rig prints.
    pub(super) fn start(program: &Path) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("the rig could not be started: {error}");
        let mut command = Command::new(program);
        command.arg("--totals-only").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(failed)?;
        let output = process.stdout.take().ok_or("the rig has no output")?;
        let mut rig = Self { process, variables: Vec::new() };
        let mut lines = BufReader::new(output).lines();
        for name in ["COSMOS_ENDPOINT", "COSMOS_KEY"] {
            let line = lines.next().ok_or("the rig has ended")?.map_err(failed)?;
            let value = line.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
            rig.variables
                .push((name, value.ok_or_else(|| format!("the rig printed no {name}"))?.to_string()));
        }
        Ok(rig)
    }

    /// The variables that tell a benchmark the account.
    pub(super) fn variables(&self) -> &[(&'static str, String)] {
        &self.variables
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // The rig ends when its input ends.
        drop(self.process.stdin.take());
        if let Err(error) = self.process.wait() {
            eprintln!("the rig did not end: {error}");
        }
    }
}
