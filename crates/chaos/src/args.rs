//! The command line.

use crate::job::Sabotage;
use crate::store::StoreKind;
use clap::{Args as Group, Parser, Subcommand, ValueEnum};
use outlast_chaos::PowerArgs;
use std::num::NonZeroU64;
use std::path::PathBuf;

#[derive(Parser)]
#[command(name = "outlast-chaos", about = "Kills worker processes and verifies the store")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Starts workers on a store, kills and stops them, and verifies the store
    Supervise(Run),
    /// Sends two instances more messages than fit into memory, and checks memory and latency
    Flood(FloodArgs),
    /// Runs turns and activities of a store until it is stopped or killed
    #[command(hide = true)]
    Worker(WorkerArgs),
    /// Serves a rig of Cosmos DB until the input of this process ends
    #[command(hide = true)]
    Rig,
    /// Cuts the power of machines with a store, and verifies their disks
    Power(PowerArgs),
}

/// A run. It ends when every target is reached or the time is over.
#[derive(Group, Clone, Debug)]
pub(crate) struct Run {
    /// The store under test
    pub(crate) store: StoreKind,
    /// Longest duration; without targets, the duration [default without targets: 1]
    #[arg(long, value_name = "N")]
    pub(crate) minutes: Option<f64>,
    /// Run until this many workers were killed
    #[arg(long, value_name = "N")]
    pub(crate) kills: Option<u64>,
    /// Run until this many instances have ended
    #[arg(long, value_name = "N")]
    pub(crate) instances: Option<u64>,
    /// Seed of all random choices
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Also write the figures to this file, as one JSON object
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Only these parts of the run
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    phases: Vec<Phase>,
    /// Divide the run into stores of their own with at most this many kills each [default: 100 on Cosmos DB, else one store]
    #[arg(long, value_name = "N")]
    pub(crate) kills_per_store: Option<NonZeroU64>,
    /// Milliseconds from one kill to the next, on average
    #[arg(long, value_name = "MS", default_value_t = 700)]
    pub(crate) pace: u64,
    /// Instances that clients keep running at once
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) in_flight: usize,
    /// Sabotages a part of the run, which the verification must then find
    #[arg(long, hide = true)]
    pub(crate) sabotage: Option<Sabotage>,
}

impl Run {
    /// The requested phases, or all phases of the store. Fails for a phase that the store does not have.
    pub(crate) fn phases(&self) -> Result<Vec<Phase>, String> {
        let known = self.store.phases();
        match self.phases.iter().find(|phase| !known.contains(phase)) {
            Some(phase) => Err(format!("{} has no phase '{phase}'", self.store.name())),
            None if self.phases.is_empty() => Ok(known.to_vec()),
            None => Ok(self.phases.clone()),
        }
    }
}

/// A phase of a run. Each phase has its own store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Phase {
    /// Kills, stops and backups
    Kills,
    /// A disk that runs full and is cleared
    DiskFull,
    /// A worker whose syncs fail
    FsyncErrors,
    /// A network that drops, delays and trickles bytes
    Partitions,
}

impl Phase {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kills => "kills",
            Self::DiskFull => "disk-full",
            Self::FsyncErrors => "fsync-errors",
            Self::Partitions => "partitions",
        }
    }
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The arguments of a flood.
#[derive(Group, Clone, Debug)]
pub(crate) struct FloodArgs {
    /// The store under test
    pub(crate) store: StoreKind,
    /// Messages for each of the two instances
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub(crate) messages: usize,
    /// Bytes of each message
    #[arg(long, value_name = "N", default_value_t = 2 << 20)]
    pub(crate) bytes: usize,
    /// Ordinary instances beside them
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) ordinary: usize,
    /// MiB that this process may use
    #[arg(long, value_name = "MIB", default_value_t = 512)]
    pub(crate) most_memory: u64,
    /// Seconds to wait for each outcome
    #[arg(long, value_name = "S", default_value_t = 3_600)]
    pub(crate) patience: u64,
    /// Do not check how long ordinary instances take
    #[arg(long)]
    pub(crate) ignore_latency: bool,
    /// Also write the figures to this file, as one JSON object
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Group, Clone, Debug)]
pub(crate) struct WorkerArgs {
    pub(crate) store: StoreKind,
    /// Folder of the store
    #[arg(long)]
    pub(crate) disk: PathBuf,
    /// Folder of the effect ledger and the commit logs
    #[arg(long)]
    pub(crate) folder: PathBuf,
    #[arg(long)]
    pub(crate) name: String,
    /// Duration of the leases of the worker
    #[arg(long)]
    pub(crate) lease_ms: u64,
    #[arg(long)]
    pub(crate) sabotage: Option<Sabotage>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Run {
        match Args::parse_from(format!("chaos supervise {line}").split(' ')).command {
            Command::Supervise(run) => run,
            _ => panic!("a run"),
        }
    }

    #[test]
    fn a_run_without_options_has_every_phase() {
        let run = run("sqlite");
        assert_eq!((run.phases().unwrap().len(), run.kills, run.seed), (3, None, 1));
    }

    #[test]
    fn targets_and_phases_are_read() {
        let run = run("sqlite --minutes 2.5 --kills 30 --phases kills,disk-full --sabotage silent-ok");
        assert_eq!((run.minutes, run.kills), (Some(2.5), Some(30)));
        assert_eq!(run.phases(), Ok(vec![Phase::Kills, Phase::DiskFull]));
        assert_eq!(run.sabotage, Some(Sabotage::SilentOk));
    }

    #[test]
    fn each_store_has_its_own_phases() {
        assert_eq!(run("postgres").phases(), Ok(vec![Phase::Kills, Phase::Partitions]));
        let refused = run("postgres --phases kills,disk-full").phases();
        assert_eq!(refused, Err("postgres has no phase 'disk-full'".to_string()));
        assert_eq!(run("postgres --phases partitions").phases(), Ok(vec![Phase::Partitions]));
        assert_eq!(run("cosmos").phases(), Ok(vec![Phase::Kills]));
        let refused = run("sqlite --phases partitions").phases();
        assert_eq!(refused, Err("sqlite has no phase 'partitions'".to_string()));
    }

    #[test]
    fn flood_reads_its_file_of_figures() {
        let args = Args::parse_from("chaos flood sqlite --messages 9 --json f.json".split(' '));
        let Command::Flood(flood) = args.command else { panic!("a flood") };
        assert_eq!((flood.messages, flood.json), (9, Some(PathBuf::from("f.json"))));
    }

    #[test]
    fn power_reads_cuts_seed_and_file() {
        let args = Args::parse_from("chaos power --cuts 8 --seed 3 --json f.json".split(' '));
        let Command::Power(power) = args.command else { panic!("power") };
        assert_eq!((power.cuts, power.seed, power.json), (8, 3, Some(PathBuf::from("f.json"))));
        for line in ["--cuts", "--cuts many", "--speed 3"] {
            assert!(
                Args::try_parse_from(format!("chaos power {line}").split_whitespace()).is_err(),
                "{line}"
            );
        }
    }

    #[test]
    fn invalid_arguments_are_refused() {
        let zero = "sqlite --kills-per-store 0";
        for line in ["", "oracle", "sqlite --phases fire", "sqlite --kills many", zero] {
            assert!(
                Args::try_parse_from(format!("chaos supervise {line}").split_whitespace()).is_err(),
                "{line}"
            );
        }
    }
}
