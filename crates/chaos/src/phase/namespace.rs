//! Mounting a file system needs root or a user namespace.

/// Other systems have no namespaces.
#[cfg(not(unix))]
pub(super) fn enter() {}

#[cfg(unix)]
pub(super) use on_unix::enter;

#[cfg(unix)]
mod on_unix {
    use std::os::unix::fs::MetadataExt as _;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    /// Runs this program again in its own user namespace, unless it is root or namespaces are not allowed.
    pub(in crate::phase) fn enter() {
        let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        let quiet = |command: &mut Command| {
            let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        if is_root || !quiet(Command::new("unshare").args(["-rm", "true"])) {
            return;
        }
        if let Ok(own) = std::env::current_exe() {
            // Returns only on failure; then the phase is reported as skipped.
            let _ = Command::new("unshare").arg("-rm").arg(own).args(std::env::args_os().skip(1)).exec();
        }
    }
}
