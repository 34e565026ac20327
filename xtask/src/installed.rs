//! Programs of the system that a command needs.

use std::process::{Command, Stdio};

use crate::process;

/// Finds a program, or installs its package of the same name if that is allowed; otherwise says what to do.
pub(crate) fn find(program: &str, then: &str) -> Result<(), String> {
    let found = || succeeds(program, &["--version"]).then_some(());
    find_or_install(program, program, then, found)
}

/// Looks for something that a package of the system has, if need be a second time, after the package was installed.
pub(crate) fn find_or_install<T>(
    what: &str,
    package: &str,
    then: &str,
    look: impl Fn() -> Option<T>,
) -> Result<T, String> {
    if let Some(found) = look() {
        return Ok(found);
    }
    if process::is_root() && succeeds("apt-get", &["--version"]) {
        println!("{what} is missing: installing it");
        let _ = succeeds("apt-get", &["update"]) && succeeds("apt-get", &["install", "-y", package]);
    }
    look().ok_or_else(|| {
        format!(
            "{what} is not installed and could not be: run `apt-get update && apt-get install -y {package}` as root, \
             then {then}"
        )
    })
}

pub(crate) fn succeeds(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    let quiet = command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_installed() {
        assert_eq!(find_or_install("it", "no-such-package", "again", || Some(7)), Ok(7));
    }
}
