//! Stops the server and removes its folder, also when the tool is interrupted or killed.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Stdio};

use super::server_user::ServerUser;

/// Two shells wait for the end of their stdin. The tool holds the writing end of the first shell's stdin, and the system
/// closes it when the tool ends for any reason. The first shell's stdout is the second shell's stdin.
///
/// The server stops without a checkpoint, because its data is removed.
const STOP: &str = r#"trap '' HUP INT TERM; cat > /dev/null; "$1/pg_ctl" stop --mode immediate --wait --pgdata "$2/data" >&2"#;
const REMOVE: &str = r#"trap '' HUP INT TERM; cat > /dev/null; rm -rf "$2""#;

/// The server stops when the keeper is dropped.
pub(super) struct Keeper {
    /// Stops the server, as the server's user.
    stop: Child,
    /// Removes the folder, as the caller, who may write to the parent folder.
    remove: Child,
}

impl Keeper {
    /// Starts both shells.
    pub(super) fn start(user: ServerUser, programs: &Path, folder: &Path) -> Result<Self, String> {
        let start = |user: ServerUser, script: &str, input: Stdio, output: Stdio| {
            let mut shell = user.command("sh");
            shell.args(["-c", script, "keeper"]).arg(programs).arg(folder);
            shell.stdin(input).stdout(output).stderr(Stdio::null());
            // Ctrl-C reaches the process group of the terminal. The shells run until the server has stopped.
            shell.process_group(0);
            shell.spawn().map_err(|error| format!("`sh` could not be run: {error}"))
        };
        let mut stop = start(user, STOP, Stdio::piped(), Stdio::piped())?;
        let ended = stop.stdout.take().map_or_else(Stdio::null, Stdio::from);
        let remove = start(ServerUser::Caller, REMOVE, ended, Stdio::null())?;
        Ok(Self { stop, remove })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.stop.stdin.take());
        if let Err(error) = self.stop.wait().and_then(|_| self.remove.wait()) {
            eprintln!("the server may still be running: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_server_is_stopped_and_its_folder_removed() {
        let root = std::env::temp_dir().join(format!("outlast-keeper-{}", std::process::id()));
        let (programs, folder, arguments) = (root.join("bin"), root.join("server"), root.join("arguments"));
        for created in [&programs, &folder] {
            fs::create_dir_all(created).unwrap();
        }
        let program = programs.join("pg_ctl");
        fs::write(&program, format!("#!/bin/sh\necho \"$@\" > {}\n", arguments.display())).unwrap();
        fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        drop(Keeper::start(ServerUser::Caller, &programs, &folder).unwrap());
        assert!(!folder.exists());
        let expected = format!("stop --mode immediate --wait --pgdata {}/data\n", folder.display());
        assert_eq!(fs::read_to_string(arguments).unwrap(), expected);
        fs::remove_dir_all(root).unwrap();
    }
}
