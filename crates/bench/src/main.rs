//! `cargo xtask bench provider`: measures the store beside hand-written floors that store the same rows. Also our side
//! of `cargo xtask bench compare`, which starts this program once per figure.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints to its terminal")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock and starts threads")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that fails stops")]

mod additions;
mod api;
mod cases;
mod check;
mod compare;
mod engine;
mod floor;
mod footprint;
mod growth;
mod held;
mod hello;
mod instructions;
mod lists;
mod macros;
#[path = "../../../bench/peers/measure/mod.rs"]
mod measure;
mod observe;
mod place;
mod quickstart;
mod recovery;
mod report;
#[path = "../../../bench/peers/cases/mod.rs"]
mod shared;
mod side;
mod sizes;
mod soak;
mod testing;
mod verdict;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Benchmarks of Outlast; `cargo xtask bench` runs them.
#[derive(Parser)]
#[command(name = "outlast-bench")]
struct Args {
    #[command(subcommand)]
    call: Call,
}

#[derive(Subcommand)]
enum Call {
    /// Measures the SQLite store on a file at synchronous=FULL, interleaved with hand-written floors
    ///
    /// The file is in the folder OUTLAST_BENCH_DIR (default: the system's temporary folder).
    Provider(cases::Plan),
    /// Runs one scenario for `cargo xtask bench compare`, and prints one line of JSON
    Compare(Scenario),
    /// Runs one floor for `cargo xtask bench compare`, and prints one line of JSON: hello, hello-postgres or fsync
    Floor(Scenario),
    /// Prints the sizes of tables and indexes in PostgreSQL after many orchestrations
    ///
    /// Runs orchestrations of one activity, deletes them, and does both again. `cargo xtask bench sizes` starts the server.
    Sizes(sizes::Plan),
    /// Prints the times of gauges, totals and lists in stores with many finished instances
    ///
    /// A few instances failed, and one runs for each thousand of them. Also prints the times without the index of running and
    /// failed instances. `cargo xtask bench lists` starts the server.
    Lists(lists::Plan),
    /// Measures `outlast serve` on stores with many instances. Fails if a target is missed
    ///
    /// The figures: its size and start, lists and counts over HTTP, the first byte of the page, and by how much 200 requests per
    /// second slow a full workload. `cargo xtask bench api` builds the program and starts the server.
    Api(api::Plan),
    /// Sends the requests of `api`, and prints a line of JSON
    #[command(hide = true)]
    ApiLoad(api::Load),
    /// Measures orchestrations per second and idle CPU time of SQLite and PostgreSQL, without and with held instances
    ///
    /// Each held instance has one waiting message. Fails if the rate with held instances is below 95 %, or idle CPU time grows by
    /// more than 0.1 % of a core. `cargo xtask bench held` starts the server.
    Held(held::Plan),
    /// Measures what the additions for operators cost orchestrations of one activity. Fails at 3 % or more
    ///
    /// The additions are the index of running and failed instances, and the reports of nodes. Interleaved rounds run on stores with
    /// and without them. `cargo xtask bench additions` starts the server.
    Additions(additions::Plan),
    /// Clones this repository into a temporary folder, builds the command from nothing and runs its demo
    ///
    /// Prints the seconds until the page answers. Fails above five minutes. The download of dependencies does not count.
    Quickstart,
    /// Prints the time of `outlast check` on a SQLite file with many running instances. Fails above a minute
    ///
    /// `cargo xtask bench check` builds both programs.
    Check(check::Plan),
    /// Runs orchestrations of one activity at full load and then at half of it. Fails if a target is missed
    ///
    /// Prints a line every ten seconds, compares the last minute with the first, and writes plots of throughput, latency, memory
    /// and sizes.
    Soak(soak::Args),
    /// Measures calls in stores with more and more finished instances
    ///
    /// The calls are hellos, fetches, pages, deletions and prunes. Fails if a call other than the list of all ids takes 1.5 times
    /// as long at the end. `cargo xtask bench growth` starts the server.
    Growth(growth::Plan),
    /// Measures the start of a runtime beside many unfinished instances, and a turn with a long history
    ///
    /// Each unfinished instance has a due message. No process holds the instance with the long history; the benchmark fails if its
    /// turn takes 20 ms or more. `cargo xtask bench recovery` starts the server.
    Recovery(recovery::Plan),
    /// Builds hello world on a SQLite file from nothing with Outlast, duroxide and durare
    ///
    /// Prints the seconds, the packages and the sizes of the programs. Fails if Outlast is not the best by each of them.
    Footprint,
    /// Compiles every example with the compiler's clock
    ///
    /// Prints the share of the expansion of macros. Fails if it is more than 10 %.
    Macros,
    /// Builds the tests of the test kit as a user's `cargo test` does, and runs three of them alone
    ///
    /// The figures: 1,000 small tests, a year of virtual time, and a sweep of a saga with ten steps. Fails if a time is above its
    /// limit.
    Testing(testing::Plan),
    /// Runs a hot path of the engine once, for a tool that counts instructions
    Engine(engine::Plan),
    /// Counts the instructions of the engine's hot paths with valgrind, and compares them with the recorded counts
    Instructions {
        /// Records the counts in testdata/engine-instructions.json and docs/performance.md
        #[arg(long)]
        record: bool,
    },
    /// Runs orchestrations on a store in memory, for a tool that counts instructions
    Observe(observe::Plan),
}

/// A scenario with options that the programs of the peers share; `measure/args.rs` reads them.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
struct Scenario {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "SCENARIO [OPTIONS]")]
    args: Vec<String>,
}

fn main() -> ExitCode {
    match Args::parse().call {
        Call::Provider(plan) => verdict(Ok(cases::run(&plan))),
        Call::Compare(scenario) => shared::main(scenario.args.into_iter()),
        Call::Floor(floor) => compare::main(floor.args.into_iter()),
        Call::Sizes(plan) => exit_code(sizes::run(&plan)),
        Call::Lists(plan) => exit_code(lists::run(&plan)),
        Call::Api(plan) => verdict(api::run(&plan)),
        Call::ApiLoad(load) => exit_code(api::generate(&load)),
        Call::Held(plan) => verdict(held::run(&plan)),
        Call::Additions(plan) => verdict(additions::run(&plan)),
        Call::Quickstart => verdict(quickstart::run()),
        Call::Check(plan) => verdict(check::run(&plan)),
        Call::Soak(args) => verdict(soak::run(args)),
        Call::Growth(plan) => verdict(growth::run(&plan)),
        Call::Recovery(plan) => verdict(recovery::run(&plan)),
        Call::Footprint => verdict(footprint::run()),
        Call::Macros => verdict(macros::run()),
        Call::Testing(plan) => verdict(testing::run(&plan)),
        Call::Engine(plan) => {
            engine::run(&plan);
            ExitCode::SUCCESS
        }
        Call::Instructions { record } => verdict(instructions::run(record)),
        Call::Observe(plan) => exit_code(observe::run(&plan)),
    }
}

/// Whether all figures met their targets. The benchmark has printed those that did not.
fn verdict(met: Result<bool, String>) -> ExitCode {
    match met {
        Ok(false) => ExitCode::FAILURE,
        outcome => exit_code(outcome.map(drop)),
    }
}

fn exit_code(outcome: Result<(), String>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
fn parse(line: &str) -> Result<Call, clap::Error> {
    Args::try_parse_from(["outlast-bench"].into_iter().chain(line.split_whitespace())).map(|args| args.call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_scenario_are_passed_on_unread() {
        let Ok(Call::Compare(scenario)) = parse("compare hello --count 5 --synchronous full") else {
            panic!("a scenario")
        };
        assert_eq!(scenario.args, ["hello", "--count", "5", "--synchronous", "full"]);
        let Ok(Call::Floor(floor)) = parse("floor fsync --dir here --help") else { panic!("a floor") };
        assert_eq!(floor.args, ["fsync", "--dir", "here", "--help"]);
    }

    #[test]
    fn paths_of_programs_come_before_options() {
        let Ok(Call::Api(_)) = parse("api target/outlast --instances 10 --seconds 1") else { panic!("api") };
        let Ok(Call::Check(_)) = parse("check outlast orders --instances 10") else { panic!("check") };
        let Ok(Call::ApiLoad(_)) = parse("api-load 127.0.0.1:80 3") else { panic!("api-load") };
        let Ok(Call::Engine(_)) = parse("engine warm-turns --setup-only") else { panic!("engine") };
        let Ok(Call::Observe(_)) = parse("observe both 20") else { panic!("observe") };
    }

    #[test]
    fn wrong_arguments_are_refused_with_status_2() {
        for line in [
            "",
            "speed",
            "provider --only hello64,nothing",
            "provider --json",
            "sizes --count many",
            "sizes --fast",
            "lists --finished",
            "api",
            "check outlast",
            "soak --minutes 0",
            "soak --store oracle",
            "growth --finished 10",
            "growth --finished 10,5",
            "growth --store oracle",
            "recovery --events many",
            "footprint --quick",
            "additions --rounds 0",
            "quickstart --cold",
            "testing --json",
            "engine faster",
            "observe everything",
        ] {
            let Err(error) = parse(line) else { panic!("{line}") };
            assert_eq!(error.exit_code(), 2, "{line}");
        }
    }
}
