//! Finds the programs of the server: `initdb`, `postgres` and `pg_ctl`.

use std::path::{Path, PathBuf};

use crate::installed;

const NEEDED: [&str; 3] = ["initdb", "postgres", "pg_ctl"];

/// Debian packages install the programs of each version below this folder, outside of PATH.
const VERSIONS: &str = "/usr/lib/postgresql";

/// The folder of the programs. Root installs missing programs; for other users the error names the command.
pub(super) fn find() -> Result<PathBuf, String> {
    installed::find_or_install("PostgreSQL", "postgresql", "try again", || {
        in_path(&std::env::var_os("PATH")?).or_else(|| newest(Path::new(VERSIONS)))
    })
}

/// PATH may contain links to the programs: the folder of the link's target is returned.
fn in_path(path: &std::ffi::OsStr) -> Option<PathBuf> {
    let real = |folder: PathBuf| folder.join(NEEDED[0]).canonicalize().ok()?.parent().map(Path::to_path_buf);
    std::env::split_paths(path).filter_map(real).find(|folder| is_complete(folder))
}

/// The folder of the newest version with all programs.
fn newest(versions: &Path) -> Option<PathBuf> {
    let numbered = |entry: std::fs::DirEntry| {
        Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path().join("bin")))
    };
    let found = std::fs::read_dir(versions).ok()?.flatten().filter_map(numbered);
    found.filter(|(_, folder)| is_complete(folder)).max().map(|(_, folder)| folder)
}

fn is_complete(folder: &Path) -> bool {
    NEEDED.iter().all(|program| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A folder like the packages', with these versions in it.
    fn installed(name: &str, versions: &[(&str, &[&str])]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("outlast-programs-{name}-{}", std::process::id()));
        for (version, programs) in versions {
            let bin = root.join(version).join("bin");
            fs::create_dir_all(&bin).unwrap();
            programs.iter().for_each(|program| fs::write(bin.join(program), "").unwrap());
        }
        root
    }

    #[test]
    fn the_newest_version_that_is_complete_is_taken() {
        let all = NEEDED.as_slice();
        let root = installed("newest", &[("9", all), ("13", all), ("17", &["initdb"]), ("old", all)]);
        assert_eq!(newest(&root), Some(root.join("13/bin")));
        assert_eq!(newest(&root.join("9")), None);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn links_in_the_path_lead_to_the_programs() {
        let root = installed("links", &[("15", NEEDED.as_slice())]);
        let links = root.join("links");
        fs::create_dir_all(&links).unwrap();
        std::os::unix::fs::symlink(root.join("15/bin/initdb"), links.join("initdb")).unwrap();
        let path = std::env::join_paths([root.join("nothing"), links]).unwrap();
        let expected = root.join("15/bin").canonicalize().unwrap();
        assert_eq!(in_path(&path), Some(expected));
        assert_eq!(in_path(root.as_os_str()), None);
        fs::remove_dir_all(root).unwrap();
    }
}
