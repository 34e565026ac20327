//! `cargo xtask dist`: an archive of the command for each target, with a file of checksums.
//!
//! The same sources and tools give the same bytes: the binary contains no path of the machine, and the archive no time, user
//! or order of the file system.

mod archive;
mod build;
mod stage;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use outlast_packages as packages;
use outlast_toolkit::{files, process};

#[derive(clap::Args)]
pub(super) struct Args {
    /// The target to build for; may be repeated; default: this machine
    #[arg(long, value_name = "TRIPLE")]
    target: Vec<String>,
    /// Packs this program instead of building it
    #[arg(long, value_name = "FILE", conflicts_with = "target")]
    binary: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, String> {
    let folder = process::target().join("dist");
    let version = version()?;
    let epoch = epoch()?;
    let targets = if args.target.is_empty() { vec![host()?] } else { args.target.clone() };
    let mut archives = Vec::new();
    for target in &targets {
        let binary = match &args.binary {
            Some(binary) => binary.clone(),
            None => build::build(target, epoch)?,
        };
        let name = format!("outlast-{version}-{target}");
        stage::stage(&folder.join(&name), &binary)?;
        archives.push(archive::pack(&folder, &name, epoch)?);
    }
    let sums = archives.iter().map(|archive| archive::checksum(archive)).collect::<Result<String, _>>()?;
    files::write(&folder.join("SHA256SUMS"), &sums)?;
    print!("{sums}");
    archives.iter().try_for_each(|archive| show(archive))?;
    Ok(ExitCode::SUCCESS)
}

fn show(archive: &Path) -> Result<(), String> {
    let size = std::fs::metadata(archive).map_err(|error| format!("{}: {error}", archive.display()))?.len();
    println!("{}: {} kB", archive.display(), size / 1_000);
    Ok(())
}

/// The version of the command.
fn version() -> Result<String, String> {
    let packages = packages::load()?;
    let package = packages.iter().find(|package| package.name == build::PACKAGE);
    package.map(|package| package.version.to_string()).ok_or_else(|| format!("no package {}", build::PACKAGE))
}

/// The triple of this machine, from `host: TRIPLE`.
fn host() -> Result<String, String> {
    let about = process::output(Command::new("rustc").arg("-vV").current_dir(process::root()))?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_string).ok_or_else(|| format!("`rustc -vV` does not name the host: {about}"))
}

/// The time of all files in an archive, in seconds: that of the commit, or of the variable that other tools use.
fn epoch() -> Result<u64, String> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => process::output(
            Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(process::root()),
        )?,
    };
    text.trim().parse().map_err(|_| format!("`{}` is no time in seconds", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_time_of_an_archive_come_from_the_repository() {
        assert!(version().unwrap().split('.').count() == 3);
        assert!(host().unwrap().contains('-'));
        assert!(epoch().unwrap() > 1_700_000_000);
    }
}
