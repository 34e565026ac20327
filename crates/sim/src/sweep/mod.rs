//! The sweep: runs 37 scripts, and each script again for every moment at which a fault can happen, with one fault
//! at that moment. The result of the script must not change.
//!
//! Moments are calls to the store, statements of SQLite, and polls of the tasks of a node.

mod probe;
mod run;
mod scripts;

pub(crate) use probe::SweepProbe;
pub(crate) use run::{fixed_options, record_endings};

use crate::fault::Fault;
use crate::plan::StoreKind;
use crate::world::Settings;
use outlast_sqlite::StatementFault;
use outlast_testing::parallel;
use outlast_testkit::rng::Rng;
use probe::{Moments, Target};
use scripts::Script;
use std::collections::BTreeSet;
use std::ops::Range;

/// The kind of moment at which a sweep injects faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Calls to the memory store.
    Calls,
    /// Calls to the SQLite store.
    SqliteCalls,
    /// Statements of the SQLite store.
    Statements,
    /// Polls of the tasks of a node.
    Polls,
}

impl Level {
    /// All levels.
    pub const ALL: &[Self] = &[Self::Calls, Self::SqliteCalls, Self::Statements, Self::Polls];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Calls => "memory-calls",
            Self::SqliteCalls => "sqlite-calls",
            Self::Statements => "statements",
            Self::Polls => "polls",
        }
    }

    fn store(self) -> StoreKind {
        match self {
            Self::Calls | Self::Polls => StoreKind::Memory,
            Self::SqliteCalls | Self::Statements => StoreKind::Sqlite,
        }
    }
}

/// Faults of calls. The last three are slower than a lease: the call, its answer, or the whole node.
const OF_CALLS: &[Fault] = &[
    Fault::ErrorBefore,
    Fault::CrashBefore,
    Fault::LostAnswer,
    Fault::CrashAfter,
    Fault::StallBefore,
    Fault::StallAfter,
    Fault::Stalled,
];

/// The scripts, moments and faults of a sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep {
    /// The levels to run.
    pub levels: Vec<Level>,
    /// Only this script.
    pub script: Option<String>,
    /// Only the scripts at these positions of [`script_names`].
    pub scripts: Option<Range<usize>>,
    /// Only this moment.
    pub at: Option<usize>,
    /// Only this fault, by its name on the command line.
    pub fault: Option<String>,
    /// Chooses the moments, if not all of them run.
    pub seed: u64,
    /// Only one moment in this many runs.
    pub one_in: u64,
}

impl Default for Sweep {
    fn default() -> Self {
        let levels = Level::ALL.to_vec();
        Self { levels, script: None, scripts: None, at: None, fault: None, seed: 0, one_in: 1 }
    }
}

/// The results of one script at one level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The name of the script.
    pub script: &'static str,
    /// The level.
    pub level: Level,
    /// Number of its moments.
    pub moments: usize,
    /// Number of runs with a fault.
    pub runs: usize,
    /// Number of runs that broke an invariant or ended differently.
    pub failed: usize,
}

/// A run that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepFailure {
    /// Arguments of `cargo xtask sim` that repeat the run.
    pub command: String,
    /// Broken invariants, in the order in which they were found.
    pub failures: Vec<String>,
    /// The last lines of the trace.
    pub lines: Vec<String>,
}

/// The results of a sweep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SweepResult {
    /// One row for each script and level.
    pub rows: Vec<Row>,
    /// Failed runs, ordered by script, level and moment.
    pub failures: Vec<SweepFailure>,
}

/// Names of all scripts.
pub fn script_names() -> Vec<&'static str> {
    scripts::all().into_iter().map(|script| script.name).collect()
}

/// Names of all faults of all levels.
pub fn sweep_fault_names() -> Vec<String> {
    let calls = OF_CALLS.iter().map(|fault| fault.name().replace(' ', "-"));
    calls.chain(["fails", "fails-after", "dies-0", "dies-1"].map(str::to_string)).collect()
}

/// One run of a script.
struct Job {
    script: usize,
    level: Level,
    target: Option<Target>,
}

/// Runs a sweep. The result does not depend on the number of threads.
pub fn sweep(request: &Sweep, settings: &Settings) -> SweepResult {
    let scripts = scripts::all();
    let chosen = |(at, script): &(usize, &Script)| {
        request.script.as_deref().is_none_or(|name| name == script.name)
            && request.scripts.as_ref().is_none_or(|scripts| scripts.contains(at))
    };
    let mut first = Vec::new();
    for level in &request.levels {
        let scripts = scripts.iter().enumerate().filter(chosen);
        first.extend(scripts.map(|(script, _)| Job { script, level: *level, target: None }));
    }
    let mut swept = SweepResult::default();
    let mut jobs = Vec::new();
    for (job, script_run) in first.iter().zip(run_jobs(&first, &scripts, settings)) {
        let targets = request.targets(scripts[job.script].name, job.level, &script_run.moments);
        swept.add(&scripts, job, &script_run, targets.len());
        // A script that fails without a fault is not run with faults.
        let targets = if script_run.failures.is_empty() { targets } else { Vec::new() };
        jobs.extend(targets.into_iter().map(|target| Job { target: Some(target), ..*job }));
    }
    for (job, script_run) in jobs.iter().zip(run_jobs(&jobs, &scripts, settings)) {
        swept.add(&scripts, job, &script_run, 0);
    }
    swept
}

fn run_jobs(jobs: &[Job], scripts: &[Script], settings: &Settings) -> Vec<run::ScriptRun> {
    parallel::map(jobs, |job| {
        let seed = job.script as u64;
        run::run_script(&scripts[job.script], seed, job.level.store(), job.target, settings)
    })
}

impl Sweep {
    /// All moments of a script with every fault that can happen then.
    fn targets(&self, script: &str, level: Level, moments: &Moments) -> Vec<Target> {
        let mut all = Vec::new();
        match level {
            Level::Calls | Level::SqliteCalls => {
                for (at, by_node) in moments.calls.iter().enumerate() {
                    let faults = OF_CALLS
                        .iter()
                        .filter(|fault| *by_node || !(fault.is_crash() || **fault == Fault::Stalled));
                    all.extend(faults.map(|fault| Target::Call(at, *fault)));
                }
            }
            Level::Statements => {
                for (at, is_commit) in moments.statements.iter().enumerate() {
                    all.push(Target::Statement(at, StatementFault::Before));
                    if *is_commit {
                        all.extend(
                            [StatementFault::After, StatementFault::DiskFull]
                                .map(|fault| Target::Statement(at, fault)),
                        );
                    }
                }
            }
            Level::Polls => {
                for (node, polls) in moments.polls.iter().enumerate() {
                    all.extend((0..*polls).map(|at| Target::Poll(node, at)));
                }
            }
        }
        all.retain(|target| self.chooses(script, level, *target));
        all
    }

    fn chooses(&self, script: &str, level: Level, target: Target) -> bool {
        let (at, fault) = describe(target);
        if self.at.is_some_and(|only| only != at) || self.fault.as_ref().is_some_and(|only| *only != fault) {
            return false;
        }
        let label = format!("{script} {} {at} {fault}", level.name());
        self.one_in <= 1 || Rng::stream(self.seed, &label).below(self.one_in) == 0
    }
}

/// The moment and the fault, as on the command line.
fn describe(target: Target) -> (usize, String) {
    match target {
        Target::Call(at, fault) => (at, fault.name().replace(' ', "-")),
        Target::Statement(at, StatementFault::Before) => (at, "fails".to_string()),
        Target::Statement(at, StatementFault::After) => (at, "fails-after".to_string()),
        Target::Statement(at, StatementFault::Busy) => (at, "busy".to_string()),
        Target::Statement(at, StatementFault::DiskFull) => (at, "disk-full".to_string()),
        Target::Poll(node, at) => (usize::try_from(at).unwrap_or(usize::MAX), format!("dies-{node}")),
    }
}

impl SweepResult {
    fn add(&mut self, scripts: &[Script], job: &Job, script_run: &run::ScriptRun, planned: usize) {
        let script = scripts[job.script].name;
        let failed = usize::from(!script_run.failures.is_empty());
        match job.target {
            None => {
                let moments = match job.level {
                    Level::Calls | Level::SqliteCalls => script_run.moments.calls.len(),
                    Level::Statements => script_run.moments.statements.len(),
                    Level::Polls => script_run
                        .moments
                        .polls
                        .iter()
                        .map(|polls| usize::try_from(*polls).unwrap_or(0))
                        .sum(),
                };
                let runs = if failed == 0 { planned } else { 0 };
                self.rows.push(Row { script, level: job.level, moments, runs, failed });
            }
            Some(_) => {
                let row = self.rows.iter_mut().find(|row| (row.script, row.level) == (script, job.level));
                if let Some(row) = row {
                    row.failed += failed;
                }
            }
        }
        if failed > 0 {
            let mut command = format!("--sweep {} --script {script}", job.level.name());
            if let Some(target) = job.target {
                let (at, fault) = describe(target);
                command.push_str(&format!(" --at {at} --fault {fault}"));
            }
            let (failures, lines) = (script_run.failures.clone(), script_run.lines.clone());
            self.failures.push(SweepFailure { command, failures, lines });
        }
    }

    /// Number of scripts that ran.
    pub fn scripts(&self) -> usize {
        self.rows.iter().map(|row| row.script).collect::<BTreeSet<_>>().len()
    }

    /// Number of runs with a fault at a level.
    pub fn runs(&self, level: Level) -> usize {
        self.rows.iter().filter(|row| row.level == level).map(|row| row.runs).sum()
    }
}
