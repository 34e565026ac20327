//! `cargo xtask bench macros`: the share of attributes and derives in the build time of the examples.

use outlast_toolkit::process;
use serde_json::Value;
use std::process::Command;

/// The command fails above this share, in percent.
const MOST_PERCENT: f64 = 10.0;
const MACROS: &str = "outlast-macros";
/// A folder of its own: the flags of the measurement would make cargo build all packages of other commands again.
const TARGET: &str = "target/macros";

/// The times of one compilation, in seconds.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Times {
    total: f64,
    expansion: f64,
}

/// Builds the dependencies, then compiles the macros and every example once more with the compiler's clock.
///
/// The time of an expansion counts every macro of an example, `println!` and the derives of serde included, so the share is an upper
/// bound.
///
/// Returns whether the share is small enough.
pub(crate) fn run() -> Result<bool, String> {
    process::output(&mut cargo(&[
        "build",
        "--quiet",
        "-p",
        "outlast",
        "--features",
        "sqlite",
        "--examples",
    ]))?;
    let macros = compile(&["-p", MACROS, "--lib"])?;
    let mut all = Times::default();
    println!("{:<24} {:>9} {:>12}", "example", "seconds", "expansion");
    for example in examples()? {
        let times = compile(&["-p", "outlast", "--features", "sqlite", "--example", &example])?;
        println!("{example:<24} {:>9.2} {:>12.3}", times.total, times.expansion);
        all = Times { total: all.total + times.total, expansion: all.expansion + times.expansion };
    }
    let expansion = all.expansion / all.total * 100.0;
    let whole = (all.expansion + macros.total) / (all.total + macros.total) * 100.0;
    println!("{:<24} {:>9.2} {:>12.3}", "all", all.total, all.expansion);
    println!("the package {MACROS} takes {:.2} s, once", macros.total);
    println!("expansions take {expansion:.1} % of the time of the examples, {MOST_PERCENT} % are allowed");
    println!("with the package {MACROS} it is {whole:.1} % of a first build");
    Ok(expansion <= MOST_PERCENT)
}

fn cargo(args: &[&str]) -> Command {
    let mut command = process::cargo(args);
    command.env("CARGO_TARGET_DIR", TARGET);
    command
}

/// The examples that the features of this command build.
fn examples() -> Result<Vec<String>, String> {
    let folder = process::root().join("crates/outlast/examples");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let names = names.filter_map(|name| name.strip_suffix(".rs").map(str::to_string));
    // It needs the test kit.
    let mut names: Vec<String> = names.filter(|name| name != "testing").collect();
    names.sort();
    Ok(names)
}

/// Compiles one target, also if the build of cargo is up to date.
fn compile(target: &[&str]) -> Result<Times, String> {
    // A flag that changes with every run of this command.
    let unique = format!("--cfg=run_{}", std::process::id());
    let flags = ["--", "-Ztime-passes", "-Ztime-passes-format=json", &unique];
    let args: Vec<&str> = [&["rustc", "--quiet"][..], target, &flags[..]].concat();
    let mut command = cargo(&args);
    // The clock of the compiler is an option of its nightly builds.
    command.env("RUSTC_BOOTSTRAP", "1");
    let output = command.output().map_err(|error| format!("`{}`: {error}", process::display(&command)))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let times = times(&text);
    match output.status.success() && times.total > 0.0 {
        true => Ok(times),
        false => Err(format!("`{}` failed:\n{text}", process::display(&command))),
    }
}

/// Reads the lines of the compiler's option `-Ztime-passes-format=json`.
fn times(text: &str) -> Times {
    let mut times = Times::default();
    for line in text.lines().filter_map(|line| line.trim().strip_prefix("time: ")) {
        let pass: Value = serde_json::from_str(line).unwrap_or_default();
        let time = pass["time"].as_f64().unwrap_or_default();
        match pass["pass"].as_str() {
            Some("total") => times.total += time,
            Some("macro_expand_crate") => times.expansion += time,
            _ => {}
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_passes_of_the_compiler_are_read() {
        let text = "warning: x\ntime: {\"pass\":\"macro_expand_crate\",\"time\":0.25,\"rss_start\":1}\n  \
                    time: {\"pass\":\"total\",\"time\":2.0,\"rss_start\":1}\ntime: odd";
        assert_eq!(times(text), Times { total: 2.0, expansion: 0.25 });
    }

    #[test]
    fn every_example_without_a_feature_of_tests_is_measured() {
        let examples = examples().unwrap();
        assert!(examples.contains(&"saga".to_string()) && !examples.contains(&"testing".to_string()));
    }
}
