//! Programs of the system that a command needs.

use std::path::PathBuf;
use std::process::Command;

use crate::process;

/// Checks that a program can be run. If it cannot, root installs the system package of the same name.
///
/// The error names the command that installs the package; `then` completes "install it, then ..".
pub fn find(program: &str, then: &str) -> Result<(), String> {
    find_or_install(program, program, then, || succeeds(program, &["--version"]).then_some(()))
}

/// Calls `look`; if it returns `None`, root installs `package` and `look` is called again.
pub fn find_or_install<T>(
    name: &str,
    package: &str,
    then: &str,
    look: impl Fn() -> Option<T>,
) -> Result<T, String> {
    find_or_install_with(name, &["install", "-y", package], then, look)
}

/// [`find_or_install`] with several packages, without the packages that they only recommend.
pub fn find_or_install_all<T>(
    name: &str,
    packages: &[&str],
    then: &str,
    look: impl Fn() -> Option<T>,
) -> Result<T, String> {
    let install = [&["install", "-y", "--no-install-recommends"], packages].concat();
    find_or_install_with(name, &install, then, look)
}

/// Calls `look`; if it returns `None`, root runs `apt-get` with the arguments `install`, and `look` is called again.
fn find_or_install_with<T>(
    name: &str,
    install: &[&str],
    then: &str,
    look: impl Fn() -> Option<T>,
) -> Result<T, String> {
    if let Some(found) = look() {
        return Ok(found);
    }
    let command = install.join(" ");
    if process::is_root() && succeeds("apt-get", &["--version"]) {
        println!("{name} is missing: apt-get {command}");
        let _ = succeeds("apt-get", &["update"]) && succeeds("apt-get", install);
    }
    look().ok_or_else(|| {
        format!(
            "{name} is not installed and could not be installed: run `apt-get update && apt-get {command}` as root, then {then}"
        )
    })
}

/// The program of a package of the registry: from PATH, from an earlier call, or installed below `target/tools`.
pub fn cargo_tool(name: &str, version: &str) -> Result<PathBuf, String> {
    let folder = process::target().join("tools");
    let ours = folder.join("bin").join(name);
    let works = |program: &PathBuf| succeeds(&program.to_string_lossy(), &["--version"]);
    if let Some(found) = [PathBuf::from(name), ours.clone()].into_iter().find(works) {
        return Ok(found);
    }
    let mut install = process::cargo(&["install", name, "--locked", "--version", version, "--root"]);
    install.arg(folder);
    match process::stream(install, |_| {}) {
        Ok(status) if status.success() => Ok(ours),
        _ => Err(format!(
            "{name} is needed and could not be installed: `cargo install {name} --locked --version {version}`"
        )),
    }
}

/// Whether a program exists and exits with 0.
pub fn succeeds(program: &str, args: &[&str]) -> bool {
    process::succeeds(Command::new(program).args(args))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_in_the_path_is_not_installed_from_the_registry() {
        assert_eq!(cargo_tool("git", "^0"), Ok(PathBuf::from("git")));
    }

    #[test]
    fn a_program_that_exists_is_not_installed() {
        assert_eq!(find_or_install("it", "no-such-package", "again", || Some(7)), Ok(7));
        assert_eq!(find_or_install_all("it", &["no-such-package"], "again", || Some(7)), Ok(7));
    }
}
