//! `cargo xtask bench testing`: the figures of the test kit against their limits, each test alone, as a user's `cargo test` builds it.

use crate::measure::{ms, usage};
use crate::verdict::{self, Verdict};
use outlast_toolkit::process;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;

/// The tests of `crates/testing/tests/it/figures.rs`. Each prints one figure with its limit.
const TESTS: [&str; 3] =
    ["a_thousand_small_tests", "a_year_of_virtual_time", "a_sweep_of_a_saga_with_ten_steps"];

/// A figure that a test has printed, in milliseconds.
#[derive(Debug, PartialEq)]
struct Figure {
    name: String,
    took: f64,
    limit: f64,
}

#[derive(clap::Args)]
pub(crate) struct Plan {
    /// Also writes the rows as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Builds the tests, runs each of the three alone, and prints its figure. Returns whether all limits are met.
pub(crate) fn run(plan: &Plan) -> Result<bool, String> {
    let tests = build()?;
    let (mut verdicts, mut rows) = (Vec::new(), Vec::new());
    for test in TESTS {
        let used = usage::used_by_children(std::process::id());
        let name = format!("figures::{test}");
        let printed = process::output(Command::new(&tests).args([
            &name,
            "--exact",
            "--nocapture",
            "--test-threads=1",
        ]))?;
        let used = ms(usage::used_by_children(std::process::id()) - used);
        let figure =
            figure(&printed).ok_or_else(|| format!("the test {name} printed no figure:\n{printed}"))?;
        let holds = figure.took <= figure.limit;
        rows.push(json!({
            "name": figure.name, "ms": figure.took, "processor_ms": used, "limit_ms": figure.limit, "met": holds
        }));
        let Figure { name, took, limit } = figure;
        let text = format!(
            "{name} took {took:.1} ms, {limit:.0} ms are allowed; its program used {used:.0} ms of processor time"
        );
        verdicts.push(Verdict { text, holds });
    }
    if let Some(path) = &plan.json {
        let text = serde_json::to_string_pretty(&rows).map_err(|error| error.to_string())?;
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(verdict::print(&verdicts))
}

/// Builds the tests of the test kit, and returns their program.
fn build() -> Result<String, String> {
    let manifest = process::root().join("Cargo.toml");
    let manifest =
        std::fs::read_to_string(&manifest).map_err(|error| format!("{}: {error}", manifest.display()))?;
    let mut args = vec!["test", "--quiet", "-p", "outlast-testing", "--test", "it", "--no-run"];
    args.push("--message-format=json");
    let overrides = overrides(&manifest);
    args.extend(overrides.iter().flat_map(|setting| ["--config", setting]));
    let messages = process::output(&mut process::cargo(&args))?;
    let program = messages.lines().find_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        Some(message["executable"].as_str()?.to_string())
    });
    program.ok_or_else(|| "cargo named no program of the tests of outlast-testing".to_string())
}

/// Settings that switch off the optimisation of single packages: the workspace of a user does not have it.
fn overrides(manifest: &str) -> Vec<String> {
    let packages =
        manifest.lines().filter_map(|line| line.strip_prefix("[profile.dev.package.")?.strip_suffix(']'));
    let packages = packages.filter(|package| *package != "\"*\"");
    packages.map(|package| format!("profile.dev.package.{package}.opt-level=0")).collect()
}

/// The figure among the lines that a test has printed.
fn figure(printed: &str) -> Option<Figure> {
    printed.lines().find_map(|line| {
        let (name, rest) = line.rsplit_once(": took ")?;
        let (took, limit) = rest.split_once(" ms, the limit on two idle cores is ")?;
        let limit = limit.strip_suffix(" ms")?;
        Some(Figure { name: name.to_string(), took: took.parse().ok()?, limit: limit.parse().ok()? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figure_of_a_test_is_read() {
        let printed =
            "\nrunning 1 test\n'x': 4 moments\na year: took 7.4 ms, the limit on two idle cores is 50 ms\nok";
        let expected = Figure { name: "a year".to_string(), took: 7.4, limit: 50.0 };
        assert_eq!(figure(printed), Some(expected));
        assert_eq!(figure("running 0 tests"), None);
    }

    #[test]
    fn optimised_packages_are_found_in_the_manifest() {
        let manifest =
            "[profile.dev]\n[profile.dev.package.\"*\"]\n[profile.dev.package.serde_json]\nopt-level = 2\n";
        assert_eq!(overrides(manifest), ["profile.dev.package.serde_json.opt-level=0"]);
        let ours = std::fs::read_to_string(process::root().join("Cargo.toml")).unwrap();
        assert!(overrides(&ours).len() > 1, "the manifest of the workspace optimises single packages");
    }

    #[test]
    fn all_measured_tests_exist() {
        let figures = process::root().join("crates/testing/tests/it/figures.rs");
        let figures = std::fs::read_to_string(figures).unwrap();
        for test in TESTS {
            assert!(figures.contains(&format!("#[test]\nfn {test}()")), "{test}");
        }
        assert_eq!(figures.matches("#[test]").count(), TESTS.len());
    }
}
