//! Files that a test compares with, and writes on request.

use std::fs;
use std::path::{Path, PathBuf};

/// The environment variable that makes tests write their snapshots.
const BLESS: &str = "OUTLAST_BLESS";

/// A path in the package whose tests run: cargo sets the folder of its manifest.
pub(crate) fn in_package(path: &Path) -> PathBuf {
    match std::env::var_os("CARGO_MANIFEST_DIR") {
        Some(folder) if path.is_relative() => PathBuf::from(folder).join(path),
        _ => path.to_path_buf(),
    }
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    folder.and_then(|()| fs::write(path, text)).map_err(|error| error.to_string())
}

/// Compares a text with its file, or writes the file.
#[track_caller]
pub(crate) fn check(path: &Path, text: &str) {
    let file = in_package(path);
    if std::env::var_os(BLESS).is_some_and(|value| !value.is_empty() && value != "0") {
        if let Err(error) = write(&file, text) {
            panic!("{} cannot be written: {error}", file.display());
        }
        return;
    }
    let remedy = format!("run the test with {BLESS}=1 to write the file");
    match fs::read_to_string(&file) {
        // A checkout on Windows can have other ends of lines.
        Ok(stored) if stored.replace("\r\n", "\n") == text => {}
        Ok(stored) => {
            panic!("{} differs; if the change is intended, {remedy}\n{}", path.display(), diff(&stored, text))
        }
        Err(error) => panic!("{} cannot be read: {error}; {remedy}", file.display()),
    }
}

/// The lines of both texts: `-` the file, `+` the run. Equal lines at both ends are left out, but for two.
fn diff(stored: &str, text: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (stored.lines().collect(), text.lines().collect());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let rest = old.len().min(new.len()) - same;
    let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(old, new)| old == new).count();
    let mut lines: Vec<String> =
        old[same.saturating_sub(2)..same].iter().map(|line| format!("  {line}")).collect();
    lines.extend(old[same..old.len() - tail].iter().map(|line| format!("- {line}")));
    lines.extend(new[same..new.len() - tail].iter().map(|line| format!("+ {line}")));
    lines.extend(old[old.len() - tail..].iter().take(2).map(|line| format!("  {line}")));
    lines.join("\n")
}
