//! `cargo xtask publish`: the packages for the registry in their order, and a trial of their publication.
//!
//! The dry run lets cargo pack each package and compile it from its archive, with the other archives in place of the
//! registry. Nothing is uploaded.

use std::process::ExitCode;

use outlast_packages::{self as packages, Package, publish};
use outlast_toolkit::process;

#[derive(clap::Args)]
pub(super) struct Args {
    /// Packs every package and compiles it from its archive, without an upload
    #[arg(long)]
    dry_run: bool,
    /// With `--dry-run`: packs without compiling
    #[arg(long, requires = "dry_run")]
    no_verify: bool,
}

/// Files of a package that no user compiles.
const NOT_FOR_USERS: [&str; 2] = ["tests/", "testdata/"];

pub(super) fn run(args: &Args) -> Result<ExitCode, String> {
    let all = packages::load()?;
    let problems = publish::problems(&all);
    if !problems.is_empty() {
        let lines = problems.iter().map(|(package, message)| format!("\n  {}: {message}", package.name));
        return Err(format!("the packages cannot be published:{}", lines.collect::<String>()));
    }
    let order = publish::order(&all)?;
    for (number, package) in (1..).zip(&order) {
        let files = files(package)?;
        println!("{number:>2} {:<22} {}  {} files", package.name, package.version, files.len());
    }
    if !args.dry_run {
        println!("\n{}\ndoes it; `cargo xtask publish --dry-run` tries it first", upload(&order));
        return Ok(ExitCode::SUCCESS);
    }
    process::run(&mut process::cargo(&dry_run(&order, args.no_verify)))
}

/// The files in the archive of a package. Tests and their data do not belong there.
fn files(package: &Package) -> Result<Vec<String>, String> {
    let args = ["package", "--list", "--allow-dirty", "--quiet", "-p", &package.name];
    let list = process::output(&mut process::cargo(&args))?;
    let files: Vec<String> = list.lines().map(str::to_string).collect();
    match needless(&files) {
        Some(file) => {
            Err(format!("the archive of {} would contain {file}: add its folder to `exclude`", package.name))
        }
        None => Ok(files),
    }
}

fn needless(files: &[String]) -> Option<&String> {
    files.iter().find(|file| NOT_FOR_USERS.iter().any(|folder| file.starts_with(folder)))
}

/// The arguments of the trial. A changed work tree is allowed: the trial uploads nothing.
fn dry_run(order: &[&Package], no_verify: bool) -> Vec<String> {
    let options = ["publish", "--dry-run", "--locked", "--allow-dirty"].into_iter();
    let options = options.chain(no_verify.then_some("--no-verify"));
    options.chain(selected(order)).map(str::to_string).collect()
}

/// The command that uploads the packages.
fn upload(order: &[&Package]) -> String {
    let words: Vec<&str> = ["cargo", "publish", "--locked"].into_iter().chain(selected(order)).collect();
    words.join(" ")
}

fn selected<'a>(order: &[&'a Package]) -> impl Iterator<Item = &'a str> {
    let names: Vec<&str> = order.iter().map(|package| package.name.as_str()).collect();
    names.into_iter().flat_map(|name| ["-p", name])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_of_this_repository_can_be_published() {
        let all = packages::load().unwrap();
        let problems: Vec<String> = publish::problems(&all).into_iter().map(|(_, message)| message).collect();
        assert_eq!(problems, [""; 0]);
        let order = publish::order(&all).unwrap();
        let at = |name: &str| order.iter().position(|package| package.name == name).unwrap();
        assert!(at("outlast-model") < at("outlast-engine") && at("outlast-engine") < at("outlast"));
        assert!(at("outlast") < at("outlast-server") && at("outlast-server") < at("outlast-cli"));
        assert!(order.iter().all(|package| !["xtask", "outlast-sim"].contains(&package.name.as_str())));
    }

    #[test]
    fn the_trial_selects_each_package_and_uploads_nothing() {
        let (model, engine) = (packages::sample("model", &[]), packages::sample("engine", &[]));
        let order = [&model, &engine];
        assert_eq!(
            dry_run(&order, true).join(" "),
            "publish --dry-run --locked --allow-dirty --no-verify -p outlast-model -p outlast-engine"
        );
        assert_eq!(upload(&order), "cargo publish --locked -p outlast-model -p outlast-engine");
    }

    #[test]
    fn an_archive_with_tests_is_refused() {
        let files = ["src/lib.rs", "src/tests/rows.rs", "tests/it/main.rs"].map(str::to_string);
        assert_eq!(needless(&files), Some(&files[2]));
        assert_eq!(needless(&files[..2]), None);
    }
}
