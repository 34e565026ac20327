//! `cargo xtask bench compare`: Outlast, a peer and hand-written floors, interleaved in one run.
//!
//! Both runtimes execute the same program, `bench/peers/cases`. Every figure comes from a process of its own on a store
//! of its own; what is judged is the ratio of medians.

mod case;
mod contestant;
mod plan;
mod table;

use std::process::ExitCode;

use self::case::Case;
use self::contestant::{Contestant, Scratch};
use self::plan::{HELP, Plan};
use self::table::{Sample, Who};
use crate::process;
use crate::stopwatch::Stopwatch;

/// The peer is used at the best of these.
const PEER_DISPATCHERS: &[usize] = &[1, 2, 4, 8];
const OUR_DISPATCHERS: &[usize] = &[1, 2, 4, 8, 16, 32, 64];

pub(super) fn run(args: &[String]) -> Result<ExitCode, String> {
    if args.iter().any(|arg| matches!(arg.as_str(), "help" | "--help" | "-h")) {
        println!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    }
    let plan = Plan::parse(args)?;
    let ours = ["build", "--release", "--package", "outlast-bench"];
    let ours = Contestant::build(&ours, "outlast-bench")?;
    let manifest = "--manifest-path=bench/peers/duroxide/Cargo.toml";
    let peer = ["build", "--release", "--locked", manifest, "--target-dir=target/peers"];
    let peer = Contestant::build(&peer, "peer-duroxide")?;

    let mut run = Run { plan: &plan, ours, peer, samples: Vec::new(), errors: 0 };
    let stopwatch = Stopwatch::start();
    for round in 1..=plan.rounds {
        for case in &plan.cases {
            println!("round {round} of {}: {}", plan.rounds, case.name);
            run.round(case)?;
        }
    }
    println!("\n{}", table::render(&plan.cases, &run.samples));
    println!("{}", notes(&plan));
    println!("{} processes in {} s", run.samples.len() + run.errors, stopwatch.elapsed().as_secs());
    let complaints = table::complaints(&run.samples);
    complaints.iter().for_each(|complaint| println!("{complaint}"));
    let sound = run.errors == 0 && !complaints.iter().any(|line| line.starts_with(table::BROKEN));
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Run<'a> {
    plan: &'a Plan,
    ours: Contestant,
    peer: Contestant,
    samples: Vec<Sample>,
    errors: usize,
}

impl Run<'_> {
    /// Floor, peer and Outlast in turn, so that a slow minute of the machine hits all of them. A floor is over in a
    /// moment and easily disturbed: it is measured next to every run of the peer.
    fn round(&mut self, case: &'static Case) -> Result<(), String> {
        for &dispatchers in OUR_DISPATCHERS {
            if PEER_DISPATCHERS.contains(&dispatchers) {
                if !self.plan.in_memory {
                    self.sample(case, Who::Floor, 0)?;
                }
                self.sample(case, Who::Peer, dispatchers)?;
            }
            self.sample(case, Who::Ours, dispatchers)?;
        }
        Ok(())
    }

    /// A run that fails is reported and leaves a gap: the rest of the table is still worth something.
    fn sample(&mut self, case: &'static Case, who: Who, dispatchers: usize) -> Result<(), String> {
        let scratch = Scratch::new(&process::root())?;
        let line = self.plan.line(case, who, dispatchers);
        let contestant = if who == Who::Peer { &self.peer } else { &self.ours };
        let answer = contestant.measure(&line, scratch.path());
        let at = if dispatchers == 0 { String::new() } else { format!(", {dispatchers} dispatchers") };
        match answer {
            Ok(result) => {
                let figure = &case.figures[0];
                println!("  {}{at}: {}", who.name(), figure.show(result[figure.key].as_f64()));
                self.samples.push(Sample { case: case.name, who, dispatchers, result });
            }
            Err(error) => {
                println!("  {}{at}: FAILED: {error}", who.name());
                self.errors += 1;
            }
        }
        Ok(())
    }
}

/// What a reader of the table must know.
fn notes(plan: &Plan) -> String {
    let mut notes = vec![
        "Medians over the rounds. `(n)`: at n dispatchers for orchestrations and n for activities, the best of",
        "those tried. `to duroxide`: how many times better. `to floor`: the share of what the floor reaches.",
        "At `chain-one` duroxide polls every 1 ms instead of every 100 ms, so that its steps are what is timed.",
    ];
    if !plan.in_memory {
        notes.push(
            "duroxide 0.1.32 runs SQLite at synchronous=NORMAL: what it has acknowledged can be lost when the",
        );
        notes.push("power fails. Outlast and the floors run at FULL.");
    }
    notes.join("\n")
}
