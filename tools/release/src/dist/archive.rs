//! Packs a folder so that equal files give equal bytes, and computes checksums.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use outlast_toolkit::process;
use sha2::{Digest as _, Sha256};

/// Packs `FOLDER/NAME` into `FOLDER/NAME.tar.gz`. GNU tar sorts the files and writes the same time, owner and permissions for
/// all of them; gzip writes neither name nor time.
pub(super) fn pack(folder: &Path, name: &str, epoch: u64) -> Result<PathBuf, String> {
    let tar = folder.join(format!("{name}.tar"));
    let mut command = Command::new("tar");
    command.args(["--sort=name", "--format=ustar", "--owner=0", "--group=0", "--numeric-owner"]);
    command.arg(format!("--mtime=@{epoch}")).args(["--mode=u=rwX,go=rX", "--directory"]);
    command.arg(folder).arg("--create").arg("--file").arg(&tar).arg(name);
    process::output(&mut command).map_err(|error| format!("GNU tar is needed: {error}"))?;
    process::output(Command::new("gzip").args(["--no-name", "--best", "--force"]).arg(&tar))?;
    Ok(folder.join(format!("{name}.tar.gz")))
}

/// A line for `sha256sum --check`.
pub(super) fn checksum(file: &Path) -> Result<String, String> {
    let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let digest = Sha256::digest(&bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    Ok(format!("{digest}  {}\n", file.file_name().unwrap_or_default().to_string_lossy()))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::{Duration, SystemTime};

    /// A folder with these files, written in this order.
    fn packed(files: &[(&str, &str, u32)], age: Duration) -> (Vec<u8>, String) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a-1/man")).unwrap();
        for (name, text, mode) in files {
            let path = folder.path().join("a-1").join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
            fs::File::open(&path).unwrap().set_modified(SystemTime::UNIX_EPOCH + age).unwrap();
        }
        let archive = pack(folder.path(), "a-1", 1_700_000_000).unwrap();
        (fs::read(&archive).unwrap(), checksum(&archive).unwrap())
    }

    #[test]
    fn equal_files_give_equal_archives_whatever_their_order_times_and_permissions() {
        let first =
            packed(&[("outlast", "binary", 0o755), ("man/a.1", "page", 0o644)], Duration::from_secs(5));
        let second =
            packed(&[("man/a.1", "page", 0o600), ("outlast", "binary", 0o700)], Duration::from_secs(900_000));
        assert_eq!(first, second);
        assert!(first.1.ends_with("  a-1.tar.gz\n") && first.1.len() == 64 + 2 + 11, "{}", first.1);
        let other =
            packed(&[("outlast", "binary", 0o755), ("man/a.1", "pages", 0o644)], Duration::from_secs(5));
        assert_ne!(first.1, other.1);
    }
}
