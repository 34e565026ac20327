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
mod verdict;

use std::process::ExitCode;

const HELP: &str = "\
outlast-bench provider [--quick] [--only CASE,..] [--json FILE]

Measures the SQLite store on a file at synchronous=FULL, in the folder OUTLAST_BENCH_DIR
(default: the system's temporary folder), interleaved with hand-written floors.

  --quick       fewer and smaller rounds
  --only LIST   only these cases: hello64, hello1, timers, history, idle
  --json FILE   also write the rows as JSON

outlast-bench compare SCENARIO [OPTIONS]
outlast-bench floor hello|hello-postgres|fsync [OPTIONS]

Run one scenario, or one floor, for `cargo xtask bench compare`, and print one line of JSON.

outlast-bench sizes [--count N]

Runs N orchestrations of one activity on PostgreSQL (default: 100,000), deletes them, and does
both again; prints the sizes of tables and indexes. `cargo xtask bench sizes` starts the server.

outlast-bench lists [--finished N]

Fills stores with N finished instances (default: 1,000,000), of which a few failed, and one running
instance for each thousand of them; prints the times of gauges, totals and lists, and the times
without the index of running and failed instances. `cargo xtask bench lists` starts the server.

outlast-bench api OUTLAST [--instances N] [--seconds N]

Fills stores with N instances (default: 1,000,000) and measures `OUTLAST serve` on them: its size and start, lists and
counts over HTTP, the first byte of the page, and by how much 200 requests per second slow a full workload
(rounds of --seconds, default: 10). Fails if a target is missed. `cargo xtask bench api` builds the program
and starts the server.

outlast-bench held [--held N] [--cycles N]

Measures orchestrations per second and idle CPU time of SQLite and PostgreSQL without held instances, and
with N of them (default: 100,000), each with one waiting message. Fails if the rate with held instances is
below 95 %, or idle CPU time grows by more than 0.1 % of a core. `cargo xtask bench held` starts the server.

outlast-bench additions [--cycles N] [--rounds N]

Runs N orchestrations of one activity (default: 2,000) in ten interleaved rounds on stores with and without the
additions for operators: the index of running and failed instances, and the reports of nodes. Fails if they cost
3 % or more. `cargo xtask bench additions` starts the server.

outlast-bench quickstart

Clones this repository into a temporary folder, builds the command from nothing and runs its demo, as the front page
says; prints the seconds until the page answers. Fails above five minutes. The download of dependencies does not count.

outlast-bench check OUTLAST ORDERS [--instances N]

Fills a SQLite file with N running instances of the example ORDERS (default: 100,000), and prints the time
of `OUTLAST check`. Fails above a minute. `cargo xtask bench check` builds both programs.

outlast-bench soak [--minutes N] [--store sqlite|postgres] [--report FILE]

Runs orchestrations of one activity at the defaults, at full load and then at half of it, N minutes each
(default: 10). Prints a line every ten seconds, compares the last minute with the first, and writes plots of
throughput, latency, memory and sizes (default: target/soak-STORE.html). Fails if a target is missed.

outlast-bench growth [--finished N,N,..] [--asleep N] [--store sqlite|postgres]

Measures hellos, fetches, pages, deletions and prunes with 0, 10,000, 100,000 and 1,000,000 finished instances
(or those of --finished) beside 10,000 that wait for a timer (--asleep). Fails if a call other than
the list of all ids takes 1.5 times as long at the end. `cargo xtask bench growth` starts the server.

outlast-bench recovery [--unfinished N] [--events N] [--store sqlite|postgres]

Measures the start of a runtime on a store with N unfinished instances that each have a due message (default:
10,000), and the turn of an instance with N events (default: 10,000) that no process holds. Fails if
that turn takes 20 ms or more. `cargo xtask bench recovery` starts the server.

outlast-bench footprint

Builds hello world on a SQLite file from nothing with Outlast, duroxide and durare; prints the seconds, the
packages and the sizes of the programs. Fails if Outlast is not the best by each of them.

outlast-bench macros

Compiles every example with the compiler's clock; prints the share of the expansion of macros. Fails if it is
more than 10 %.

outlast-bench engine replay|warm-turns|typed-turns|join [--setup-only]

Runs a hot path of the engine once, for a tool that counts instructions.

outlast-bench instructions [--record]

Counts the instructions of the engine's hot paths with valgrind, and compares them with the recorded
counts; --record records them in testdata/engine-instructions.json and docs/performance.md.

outlast-bench observe nothing|metrics|spans|both [COUNT]

Runs COUNT orchestrations (default: 2,000) on a store in memory, with a recorder for metrics, a
subscriber for the spans of store operations, both or neither, for the same tool.";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some("provider") => match cases::Plan::parse(args) {
            Ok(plan) => match cases::run(&plan) {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            },
            Err(message) => {
                eprintln!("{message}\n\n{HELP}");
                ExitCode::from(2)
            }
        },
        Some("compare") => shared::main(args),
        Some("floor") => compare::main(args),
        Some("engine") => {
            let case = args.next().unwrap_or_default();
            exit_code(engine::run(&case, args.next().as_deref() != Some("--setup-only")))
        }
        Some("instructions") => {
            let record = match args.next().as_deref() {
                None => Ok(false),
                Some("--record") => Ok(true),
                Some(other) => Err(format!("unknown argument {other:?}")),
            };
            verdict(record.and_then(instructions::run))
        }
        Some("observe") => exit_code(observe::main(args)),
        Some("sizes") => exit_code(sizes::main(args)),
        Some("api") => verdict(api::main(args)),
        Some("api-load") => exit_code(api::generate(args)),
        Some("lists") => exit_code(lists::main(args)),
        Some("held") => verdict(held::main(args)),
        Some("additions") => verdict(additions::main(args)),
        Some("quickstart") => verdict(quickstart::main(args)),
        Some("check") => verdict(check::main(args)),
        Some("soak") => verdict(soak::main(args)),
        Some("footprint") => verdict(footprint::main(args)),
        Some("macros") => verdict(macros::main(args)),
        Some("growth") => verdict(growth::main(args)),
        Some("recovery") => verdict(recovery::main(args)),
        Some("help" | "--help" | "-h") => {
            println!("{HELP}");
            ExitCode::SUCCESS
        }
        other => {
            eprintln!("unknown benchmark {:?}\n\n{HELP}", other.unwrap_or(""));
            ExitCode::from(2)
        }
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
            eprintln!("{message}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}
