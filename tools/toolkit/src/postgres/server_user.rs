//! The user that runs the server, which PostgreSQL does not allow to be root.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process;

/// The users that run the server if the caller is root: the user of the PostgreSQL package, else `nobody`.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];

#[derive(Debug, Clone, Copy)]
pub(super) enum ServerUser {
    /// The user who called the tool.
    Caller,
    Other {
        user: u32,
        group: u32,
    },
}

impl ServerUser {
    /// The caller, or an unprivileged user if the caller is root.
    pub(super) fn choose() -> Result<Self, String> {
        if !process::is_root() {
            return Ok(Self::Caller);
        }
        let other = |name: &&str| Some(Self::Other { user: number("-u", name)?, group: number("-g", name)? });
        UNPRIVILEGED.iter().find_map(other).ok_or_else(|| {
            format!(
                "root may not run the server, and there is neither of the users {}",
                UNPRIVILEGED.join(", ")
            )
        })
    }

    /// A command that runs as this user, without stdin.
    pub(super) fn command(self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        // This user may not be able to read the caller's working directory.
        command.current_dir("/").stdin(Stdio::null());
        if let Self::Other { user, group } = self {
            command.uid(user).gid(group);
        }
        command
    }

    /// Creates a folder that this user owns, in the first of these folders that this user can reach.
    pub(super) fn folder(self, within: &[PathBuf], name: &str) -> Result<PathBuf, String> {
        let tried = || within.iter().map(|base| base.display().to_string()).collect::<Vec<_>>().join(", ");
        let base = within
            .iter()
            .find(|base| fs::create_dir_all(base).is_ok() && self.reaches(base))
            .ok_or_else(|| format!("the server's user can reach none of these folders: {}", tried()))?;
        let folder = base.join(name);
        let made = fs::DirBuilder::new().mode(0o700).create(&folder).and_then(|()| self.own(&folder));
        made.map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(folder)
    }

    /// Writes a file that this user owns.
    pub(super) fn write(self, path: &Path, text: &str) -> Result<(), String> {
        let written = fs::write(path, text).and_then(|()| self.own(path));
        written.map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Gives a file to this user.
    fn own(self, path: &Path) -> std::io::Result<()> {
        match self {
            Self::Caller => Ok(()),
            Self::Other { user, group } => chown(path, Some(user), Some(group)),
        }
    }

    /// Whether this user can enter the folder.
    fn reaches(self, folder: &Path) -> bool {
        let mut test = self.command("test");
        test.arg("-x").arg(folder).status().is_ok_and(|status| status.success())
    }
}

fn number(which: &str, name: &str) -> Option<u32> {
    let output = Command::new("id").args([which, name]).stderr(Stdio::null()).output().ok()?;
    String::from_utf8_lossy(&output.stdout).trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_never_root() {
        let id = ServerUser::choose().unwrap().command("id").arg("-u").output().unwrap();
        assert_ne!(id.stdout.trim_ascii(), b"0");
    }

    #[test]
    fn a_folder_that_cannot_be_created_is_skipped() {
        let name = format!("outlast-reach-{}", std::process::id());
        let user = ServerUser::choose().unwrap();
        let within = [PathBuf::from("/dev/null/x"), std::env::temp_dir(), PathBuf::from("/")];
        let folder = user.folder(&within, &name).unwrap();
        assert_eq!(folder, std::env::temp_dir().join(&name));
        let owned = user.command("test").arg("-O").arg(&folder).status().unwrap();
        assert!(owned.success());
        fs::remove_dir(folder).unwrap();
        let error = user.folder(&within[..1], &name).unwrap_err();
        assert!(error.contains("/dev/null/x"), "{error}");
    }
}
