//! `cargo xtask test --quick`: a check between two edits. It runs formatting, tidy, clippy, and the fast tests of the
//! packages that have changed. It does not replace `cargo xtask test`.

use std::process::Command;

use outlast_toolkit::postgres::{Cluster, Options};
use outlast_toolkit::process;

use super::programs::{self, Program};
use super::report::Line;
use super::{SUITES, Suite, Tally, libtest};
use crate::metadata::{self, Package};

/// The suites that the quick check runs as a whole.
const CHECKS: [&str; 3] = ["fmt", "tidy", "clippy"];

/// Modules of integration tests that take more than ten seconds, or that need more than the sources: the quick check leaves
/// them out. An empty package name means every package.
const SLOW: &[(&str, &[&str])] = &[
    ("", &["needs_root::", "needs_postgres::", "needs_browser::", "canary::"]),
    ("outlast", &["scenario::"]),
    ("outlast-chaos", &["flood::", "outage::", "power::", "verify::"]),
    ("outlast-conformance", &["defects::"]),
    ("outlast-postgres", &["model::"]),
    ("outlast-sqlite", &["model::", "threaded::"]),
    // Runs cargo in a new crate.
    ("outlast-new-provider", &["tests::a_new_provider_compiles"]),
];

/// Runs the checks, and the fast tests of the packages that have changed.
pub(crate) fn run() -> Result<Vec<Line>, String> {
    let changed = changed_packages(&changed_files()?, &metadata::load()?);
    let names = if changed.is_empty() { "none".to_string() } else { changed.join(", ") };
    println!("packages that have changed: {names}");
    let checks = SUITES.iter().filter(|suite| CHECKS.contains(&suite.name));
    let mut lines: Vec<Line> = checks.map(Suite::run).collect();
    if !changed.is_empty() {
        println!("\n=== tests: the fast tests of the packages that have changed ===");
        lines.push(Line::of("tests", || tests(&changed)));
    }
    Ok(lines)
}

/// The files that differ from the last commit. In a clean tree, the files of the last commit.
fn changed_files() -> Result<Vec<String>, String> {
    let git = |args: &[&str]| {
        let text = process::output(Command::new("git").args(args).current_dir(process::root()))?;
        Ok::<_, String>(text.lines().map(str::to_string).collect::<Vec<_>>())
    };
    let mut files = git(&["diff", "--name-only", "HEAD"])?;
    files.extend(git(&["ls-files", "--others", "--exclude-standard"])?);
    if files.is_empty() {
        files = git(&["show", "--name-only", "--format=", "HEAD"])?;
    }
    Ok(files)
}

/// The packages with at least one of these files.
fn changed_packages(files: &[String], packages: &[Package]) -> Vec<String> {
    let has_file = |package: &&Package| {
        let manifest = metadata::manifest(package);
        files.iter().any(|file| file.starts_with(manifest.trim_end_matches("Cargo.toml")))
    };
    packages.iter().filter(has_file).map(|package| package.name.to_string()).collect()
}

/// Runs the tests of these packages without the slow modules.
fn tests(packages: &[String]) -> Result<Tally, String> {
    let programs = programs::tests_of(packages)?;
    let needs_server = packages.iter().any(|package| package == "outlast-postgres");
    let mut tally = Tally::default();
    let server = needs_server.then(|| Cluster::start(&Options::default())).transpose();
    let server = server.unwrap_or_else(|reason| {
        tally.lack(format!("outlast-postgres: {}", reason.lines().next().unwrap_or_default()));
        None
    });
    for package in packages {
        if package == "outlast-postgres" && server.is_none() {
            continue;
        }
        let of_package = |program: &&Program| program.selector.starts_with(&format!("-p {package} "));
        tally.add(libtest::run_each(programs.iter().filter(of_package), &skips(package), server.as_slice()));
    }
    Ok(tally)
}

fn skips(package: &str) -> Vec<&'static str> {
    let slow = SLOW.iter().filter(|(name, _)| name.is_empty() || *name == package);
    let skips = slow.flat_map(|(_, modules)| modules.iter()).flat_map(|module| ["--skip", module]);
    ["--test-threads", "8"].into_iter().chain(skips).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_has_changed_if_one_of_its_files_has() {
        let packages = ["model", "provider"].map(|folder| metadata::sample(folder, &[]));
        let changed = |files: &[&str]| {
            changed_packages(&files.iter().map(ToString::to_string).collect::<Vec<_>>(), &packages)
        };
        assert_eq!(changed(&["crates/model/src/lib.rs", "README.md"]), ["outlast-model"]);
        assert_eq!(changed(&["crates/provider-kit/src/lib.rs", "crates/modelled"]), [""; 0]);
    }

    #[test]
    fn slow_modules_exist_in_their_packages() {
        let root = process::root();
        for (package, modules) in SLOW[1..].iter().filter(|(_, modules)| modules[0].ends_with("::")) {
            let folder = package.strip_prefix("outlast-").unwrap_or(package);
            let main =
                std::fs::read_to_string(root.join(format!("crates/{folder}/tests/it/main.rs"))).unwrap();
            for module in *modules {
                let name = module.trim_end_matches("::");
                let is_declared = [";", " {"].iter().any(|end| main.contains(&format!("mod {name}{end}")));
                assert!(is_declared, "{package} has no module {name}");
            }
        }
    }
}
