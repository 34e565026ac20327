//! Builds the command so that the binary depends on the sources and tools only.

use std::path::PathBuf;
use std::process::Command;

use outlast_toolkit::process;

/// The package of the command.
pub(super) const PACKAGE: &str = "outlast-cli";

/// Builds the command with all features for a target, and returns its file.
pub(super) fn build(target: &str, epoch: u64) -> Result<PathBuf, String> {
    // Other flags than those of ordinary builds: both keep their compiled packages.
    let folder = process::target().join("dist-build");
    let args = [
        "build",
        "--release",
        "--locked",
        "-p",
        PACKAGE,
        "--all-features",
        "--target",
        target,
        "--target-dir",
    ];
    let mut cargo = process::cargo(&args);
    cargo.arg(&folder);
    // Separated by 0x1f, because a path may contain a space.
    cargo.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", rust_flags()?.join("\u{1f}"));
    cargo.env("CFLAGS", c_flags()?).env("SOURCE_DATE_EPOCH", epoch.to_string());
    cargo.env("CARGO_PROFILE_RELEASE_DEBUG", "0").env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
    cargo.env("CARGO_INCREMENTAL", "0");
    if !process::stream(cargo, |_| {})?.success() {
        return Err(format!("the command could not be built for {target}, see above"));
    }
    let program = if target.contains("windows") { "outlast.exe" } else { "outlast" };
    Ok(folder.join(target).join("release").join(program))
}

/// Folders of this machine, and the names that stand for them in the binary. The last match counts, so the root, which may
/// be inside of another folder, is last.
fn folders() -> Result<[(String, &'static str); 3], String> {
    let sysroot =
        process::output(Command::new("rustc").args(["--print", "sysroot"]).current_dir(process::root()))?;
    let home =
        std::env::var("CARGO_HOME").or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")));
    let home = home.map_err(|_| "neither CARGO_HOME nor HOME is set".to_string())?;
    let root = process::root().display().to_string();
    Ok([(sysroot.trim().to_string(), "/rust"), (home, "/cargo"), (root, "/outlast")])
}

fn rust_flags() -> Result<Vec<String>, String> {
    Ok(folders()?.iter().map(|(folder, name)| format!("--remap-path-prefix={folder}={name}")).collect())
}

fn c_flags() -> Result<String, String> {
    let flags = folders()?.map(|(folder, name)| format!("-ffile-prefix-map={folder}={name}"));
    Ok(flags.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_this_machine_are_renamed_in_the_binary() {
        let root = process::root().display().to_string();
        let flags = rust_flags().unwrap();
        assert_eq!(flags[2], format!("--remap-path-prefix={root}=/outlast"));
        assert!(flags[0].ends_with("=/rust") && flags[1].ends_with("=/cargo"), "{flags:?}");
        assert!(c_flags().unwrap().ends_with(&format!("-ffile-prefix-map={root}=/outlast")));
    }
}
