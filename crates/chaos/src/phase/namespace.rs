//! Mounting a small disk needs root; a namespace of one's own is as good, where the machine grants it.

/// There are no namespaces.
#[cfg(not(unix))]
pub(super) fn enter() {}

#[cfg(unix)]
pub(super) use on_unix::enter;

#[cfg(unix)]
mod on_unix {
    use std::os::unix::fs::MetadataExt as _;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    /// Goes on as the same program in a namespace of its own, unless that is not needed or not allowed.
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
            // Returns only if it fails; then the phase that needs it says that it was skipped.
            let _ = Command::new("unshare").arg("-rm").arg(own).args(std::env::args_os().skip(1)).exec();
        }
    }
}
