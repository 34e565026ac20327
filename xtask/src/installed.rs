//! Programs of the system that a command needs.

use std::process::{Command, Stdio};

use crate::process;

/// Finds a program, or installs its package of the same name if that is allowed; otherwise says what to do.
pub(crate) fn find(program: &str, then: &str) -> Result<(), String> {
    if !succeeds(program, &["--version"]) && process::is_root() && succeeds("apt-get", &["--version"]) {
        println!("{program} is missing: installing it");
        let _ = succeeds("apt-get", &["update"]) && succeeds("apt-get", &["install", "-y", program]);
    }
    match succeeds(program, &["--version"]) {
        true => Ok(()),
        false => Err(format!(
            "{program} is not installed and could not be: run `apt-get update && apt-get install -y {program}` as root, \
             then {then}"
        )),
    }
}

pub(crate) fn succeeds(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    let quiet = command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
