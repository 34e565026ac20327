//! The files of an archive: the command, its completions and manual pages, licences, and two pages.

use std::fs;
use std::path::Path;
use std::process::Command;

use outlast_toolkit::{files, process};

/// The shells, and the names under which they look for a completion script.
const SHELLS: [(&str, &str); 5] = [
    ("bash", "outlast.bash"),
    ("elvish", "outlast.elv"),
    ("fish", "outlast.fish"),
    ("powershell", "_outlast.ps1"),
    ("zsh", "_outlast"),
];

/// Files of the repository, and their names in the archive.
const COPIED: [(&str, &str); 5] = [
    ("CHANGELOG.md", "CHANGELOG.md"),
    ("LICENSE-APACHE", "LICENSE-APACHE"),
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("crates/cli/README.md", "README.md"),
    ("crates/cli/licenses.txt", "THIRD-PARTY-LICENSES.txt"),
];

/// Fills an empty folder. The command itself writes its completions and manual pages.
pub(super) fn stage(folder: &Path, binary: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(failed)?;
    }
    let pages = folder.join("man/man1");
    fs::create_dir_all(&pages).map_err(failed)?;
    let name = binary.file_name().ok_or_else(|| format!("{} is no program", binary.display()))?;
    fs::copy(binary, folder.join(name)).map_err(|error| format!("{}: {error}", binary.display()))?;
    for (shell, file) in SHELLS {
        let script = process::output(Command::new(binary).args(["completions", shell]))?;
        files::write(&folder.join("completions").join(file), &script)?;
    }
    process::output(Command::new(binary).args(["man", "--dir"]).arg(&pages))?;
    for (from, to) in COPIED {
        fs::copy(process::root().join(from), folder.join(to)).map_err(|error| format!("{from}: {error}"))?;
    }
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// Answers as the command does.
    const COMMAND: &str = "#!/bin/sh\ncase $1 in\ncompletions) echo \"for $2\" ;;\nman) echo page > \"$3/outlast.1\" ;;\nesac\n";

    #[test]
    fn an_archive_has_the_command_completions_manual_pages_and_licences() {
        let temporary = tempfile::tempdir().unwrap();
        let binary = temporary.path().join("outlast");
        fs::write(&binary, COMMAND).unwrap();
        fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
        let folder = temporary.path().join("staged");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("old"), "").unwrap();
        stage(&folder, &binary).unwrap();
        for (_, file) in COPIED {
            assert!(fs::metadata(folder.join(file)).unwrap().len() > 100, "{file}");
        }
        assert_eq!(fs::read_to_string(folder.join("completions/_outlast")).unwrap(), "for zsh\n");
        assert_eq!(fs::read_dir(folder.join("completions")).unwrap().count(), SHELLS.len());
        assert!(folder.join("man/man1/outlast.1").is_file() && folder.join("outlast").is_file());
        assert!(!folder.join("old").exists());
    }
}
