//! A small file system in memory, and a file that fills it.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted file system. Dropping the value unmounts it.
pub(super) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts a file system; fails if this user may not mount.
    pub(super) fn mount(path: PathBuf, size: &str) -> Result<Self, String> {
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "outlast-chaos"]).arg(&path);
        let done = mount.output().map_err(|error| format!("`mount` could not be run: {error}"))?;
        match done.status.success() {
            true => Ok(Self(path)),
            false => Err(String::from_utf8_lossy(&done.stderr).trim().to_string()),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    fn ballast(&self) -> PathBuf {
        self.0.join("ballast")
    }

    /// Fills all remaining space.
    pub(super) fn fill(&self) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.ballast().display());
        let mut file = File::create(self.ballast()).map_err(failed)?;
        let mut piece = vec![7; 1 << 16];
        loop {
            match file.write(&piece) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::StorageFull => match piece.len() {
                    1 => return Ok(()),
                    len => piece.truncate(len / 2),
                },
                Err(error) => return Err(failed(error)),
            }
        }
    }

    pub(super) fn clear(&self) -> Result<(), String> {
        std::fs::remove_file(self.ballast()).map_err(|error| format!("{}: {error}", self.ballast().display()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, because a process may still have the store open after a failure.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
