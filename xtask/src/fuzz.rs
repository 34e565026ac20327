//! `cargo xtask fuzz`: the fuzz targets, guided by coverage. They are built by the nightly toolchain, in a package of
//! their own; `cargo test -p outlast-fuzz` replays what they left behind without either.

mod args;
mod tally;
mod tool;

use std::process::ExitCode;

use crate::command::listing;
use crate::process;
use args::Args;
use tally::Tally;
use tool::Tool;

/// Names of the targets, as in fuzz/Cargo.toml.
const TARGETS: [&str; 5] =
    ["decode_event", "decode_work_item", "list_filter_cursor", "migration_ledger", "row_corruption"];

pub(crate) fn details() -> String {
    let options = listing([
        ("TARGET", "run this one only"),
        ("--minutes N", "how long each target runs (default 10)"),
        ("--minimise", "reduce the corpus to what coverage needs, afterwards"),
        ("--json FILE", "write the counts there"),
    ]);
    let targets = TARGETS.join(", ");
    format!(
        "options:\n{options}\ntargets: {targets}\n\nAn input that fails is kept in fuzz/artifacts/TARGET. Copy it to fuzz/corpus/TARGET when it is\n\
         understood: the tests of outlast-fuzz replay what lies there."
    )
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode, String> {
    let args = Args::parse(args)?;
    let tool = Tool::find_or_install()?;
    let mut tallies = Vec::new();
    for target in &args.targets {
        let tally = tool.run(target, args.minutes)?;
        if args.minimise {
            tool.minimise(target)?;
        }
        tallies.push((*target, Tally { corpus: tool.corpus_size(target), ..tally }));
    }
    print!("{}", tally::table(&tallies));
    if let Some(path) = &args.json {
        let json = tally::json(&tallies);
        std::fs::write(process::root().join(path), json).map_err(|error| format!("{path}: {error}"))?;
    }
    let is_clean = tallies.iter().all(|(_, tally)| tally.crashes == 0);
    Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_a_program_and_a_corpus() {
        let folder = process::root().join("fuzz");
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        assert_eq!(manifest.matches("[[bin]]").count(), TARGETS.len());
        for target in TARGETS {
            assert!(manifest.contains(&format!("name = \"{target}\"")), "{target}");
            assert!(folder.join("fuzz_targets").join(format!("{target}.rs")).is_file(), "{target}");
            assert!(folder.join("corpus").join(target).is_dir(), "{target}");
        }
    }
}
