//! `cargo xtask sim`: runs the simulator, which is the package `outlast-sim`.

use std::process::Command;

use outlast_toolkit::process;

pub(crate) const OPTIONS: &str = "\
Options of the simulator:
  --seeds A..B    runs the worlds of these seeds, after the seeds of testdata/seeds.txt
  --minutes N     runs worlds for N minutes: the same recorded seeds, then from the first seed of --seeds on
  --seed S        runs one world and prints its trace; --without leaves faults out
  --score A..B    runs each known defect until one of these worlds finds it
  --page FILE     writes the table of the score to this page
  --sweep LEVEL   runs scripts with a fault at each moment: calls, statements, polls or all
  --postgres      gives every world the PostgreSQL store, on a model of its server
  --bug NAME      gives the world a defect, which must be found
  --json FILE     writes the figures of the run to this file";

/// The simulator is built with optimisations: worlds then run ten times faster.
pub(crate) fn command(args: &[String]) -> Command {
    let mut command = process::cargo(&["run", "-q", "--profile", "sim", "-p", "outlast-sim", "--"]);
    command.args(args);
    command
}
