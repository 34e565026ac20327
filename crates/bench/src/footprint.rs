//! `cargo xtask bench footprint`: the build of hello world on a SQLite file from nothing, its packages and the size of its
//! program, beside duroxide and durare.

use outlast_toolkit::{Stopwatch, process, processor_time};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARIES: [&str; 3] = ["outlast", "duroxide", "durare"];

/// The figures of one library.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Footprint {
    /// Packages that are compiled.
    packages: usize,
    /// Seconds of a build for development, and the processor time of the same build.
    debug: (f64, f64),
    /// The same for a release.
    release: (f64, f64),
    /// The program of the release without symbols, in MiB.
    size: f64,
}

pub(crate) fn run() -> Result<bool, String> {
    let measured = LIBRARIES.map(|library| measure(library).map(|footprint| (library, footprint)));
    let rows = measured.into_iter().collect::<Result<Vec<_>, _>>()?;
    print!("{}", table(&rows));
    let missed = missed(&rows);
    for figure in &missed {
        println!("MISSED: another library is ahead: {figure}");
    }
    Ok(missed.is_empty())
}

fn measure(library: &str) -> Result<Footprint, String> {
    let package = process::root().join("bench/peers/hello").join(library);
    // The downloads do not count.
    process::output(cargo(&["fetch"]).current_dir(&package))?;
    let packages = packages(&process::output(
        cargo(&["tree", "--prefix", "none", "--edges", "normal,build"]).current_dir(&package),
    )?);
    let folder = tempfile::tempdir_in(process::target()).map_err(|error| error.to_string())?;
    let (debug, _) = build(library, &package, &folder.path().join("debug"), &["build"])?;
    let (release, program) =
        build(library, &package, &folder.path().join("release"), &["build", "--release"])?;
    greets(&program, &folder.path().join("hello.db"))?;
    process::output(Command::new("strip").arg(&program))?;
    let size = std::fs::metadata(&program).map_err(|error| error.to_string())?.len() as f64 / 1024.0 / 1024.0;
    Ok(Footprint { packages, debug, release, size })
}

fn cargo(args: &[&str]) -> Command {
    process::cargo(args)
}

/// Builds into an empty folder; returns seconds and processor seconds, and the program.
fn build(
    library: &str,
    package: &Path,
    target: &Path,
    args: &[&str],
) -> Result<((f64, f64), PathBuf), String> {
    println!("{library}: {}", process::display(&cargo(args)));
    let (watch, before) = (Stopwatch::start(), processor_time());
    process::output(cargo(args).arg("--target-dir").arg(target).current_dir(package))?;
    let used =
        processor_time().zip(before).map_or(f64::NAN, |(after, before)| (after - before).as_secs_f64());
    let profile = if args.contains(&"--release") { "release" } else { "debug" };
    Ok(((watch.elapsed().as_secs_f64(), used), target.join(profile).join(format!("hello-{library}"))))
}

/// A program that does not work has no size.
fn greets(program: &Path, store: &Path) -> Result<(), String> {
    let output = process::output(Command::new(program).arg(store))?;
    match output.contains("hello, world") {
        true => Ok(()),
        false => Err(format!("{} printed {output:?}", program.display())),
    }
}

/// The packages of `cargo tree`, which repeats some with a mark, without the first one, the program.
fn packages(tree: &str) -> usize {
    let names: BTreeSet<&str> = tree
        .lines()
        .skip(1)
        .map(|line| line.trim_end_matches(" (*)"))
        .filter(|line| !line.is_empty())
        .collect();
    names.len()
}

type Figure = (&'static str, fn(&Footprint) -> f64);

const FIGURES: [Figure; 6] = [
    ("packages", |of| of.packages as f64),
    ("debug build, s", |of| of.debug.0),
    ("debug build, processor s", |of| of.debug.1),
    ("release build, s", |of| of.release.0),
    ("release build, processor s", |of| of.release.1),
    ("program, MiB", |of| of.size),
];

fn table(rows: &[(&str, Footprint)]) -> String {
    let names: Vec<&str> = rows.iter().map(|(library, _)| *library).collect();
    let mut text = format!("| | {} |\n|---|{}\n", names.join(" | "), "---:|".repeat(names.len()));
    for (name, value) in FIGURES {
        let values: Vec<String> = rows.iter().map(|(_, of)| format!("{:.1}", value(of))).collect();
        text.push_str(&format!("| {name} | {} |\n", values.join(" | ")));
    }
    text
}

/// The figures by which another library is ahead of the first one.
fn missed(rows: &[(&str, Footprint)]) -> Vec<&'static str> {
    let Some(((_, ours), others)) = rows.split_first() else { return Vec::new() };
    let behind = |value: fn(&Footprint) -> f64| others.iter().any(|(_, of)| value(of) < value(ours));
    FIGURES.into_iter().filter(|(_, value)| behind(*value)).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_counted_once_and_without_the_program() {
        assert_eq!(packages("hello v0.0.0\na v1.0.0\nb v1.0.0\na v1.0.0 (*)\n\n"), 2);
    }

    #[test]
    fn a_figure_in_which_another_library_is_ahead_is_named() {
        let ours = Footprint { packages: 10, debug: (5.0, 9.0), release: (8.0, 15.0), size: 3.0 };
        let other = Footprint { packages: 11, debug: (6.0, 9.5), release: (7.0, 16.0), size: 3.0 };
        assert_eq!(missed(&[("outlast", ours), ("other", other)]), ["release build, s"]);
    }
}
