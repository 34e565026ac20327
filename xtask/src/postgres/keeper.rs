//! Who stops the server and removes its folder, also when xtask is interrupted or killed.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Stdio};

use super::server_user::ServerUser;

/// Both wait until their input ends. That of the first one does with the process that holds the other end, however that
/// ends, and that of the second one with the first.
///
/// What the server has stored goes away with the folder, so it is not given the time to tidy up.
const STOP: &str = r#"trap '' HUP INT TERM; cat > /dev/null; "$1/pg_ctl" stop --mode immediate --wait --pgdata "$2/data" >&2"#;
const REMOVE: &str = r#"trap '' HUP INT TERM; cat > /dev/null; rm -rf "$2""#;

/// Its end is the end of the server.
pub(super) struct Keeper {
    /// The server's user may stop it.
    stop: Child,
    /// The caller may remove the folder from the one that it is in.
    remove: Child,
}

impl Keeper {
    pub(super) fn start(user: ServerUser, programs: &Path, folder: &Path) -> Result<Self, String> {
        let start = |user: ServerUser, script: &str, input: Stdio, output: Stdio| {
            let mut shell = user.command("sh");
            shell.args(["-c", script, "keeper"]).arg(programs).arg(folder);
            shell.stdin(input).stdout(output).stderr(Stdio::null());
            // Ctrl-C is for the whole group of the terminal, and these have to stay a little longer.
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
            eprintln!("the server may still be there: {error}");
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
        let (programs, folder, said) = (root.join("bin"), root.join("server"), root.join("said"));
        for made in [&programs, &folder] {
            fs::create_dir_all(made).unwrap();
        }
        let program = programs.join("pg_ctl");
        fs::write(&program, format!("#!/bin/sh\necho \"$@\" > {}\n", said.display())).unwrap();
        fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        drop(Keeper::start(ServerUser::Caller, &programs, &folder).unwrap());
        assert!(!folder.exists());
        let expected = format!("stop --mode immediate --wait --pgdata {}/data\n", folder.display());
        assert_eq!(fs::read_to_string(said).unwrap(), expected);
        fs::remove_dir_all(root).unwrap();
    }
}
