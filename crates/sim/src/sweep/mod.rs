//! The sweep: thirty stories, and each of them again for every moment at which something can go wrong, with one fault
//! there. Whatever it is, the story must end as before.
//!
//! Moments are calls to the store, statements of SQLite, and polls of the tasks of a process.

mod aim;
mod run;
mod scripts;

pub(crate) use aim::Aim;
pub(crate) use run::{endings, settled};

use crate::fault::Fault;
use crate::plan::StoreKind;
use crate::world::Settings;
use aim::{Moments, Target};
use outlast_sqlite::StatementFault;
use outlast_testkit::parallel;
use outlast_testkit::rng::Rng;
use scripts::Script;

/// Where faults are put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Calls to the memory store.
    Calls,
    /// Calls to the SQLite store.
    SqliteCalls,
    /// Statements of the SQLite store.
    Statements,
    /// Polls of the tasks of a process.
    Polls,
}

impl Level {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Calls, Self::SqliteCalls, Self::Statements, Self::Polls];

    /// For the command line.
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

/// Faults of calls. The last three are ways to be slower than a lease: the call, its answer, or the whole process.
const OF_CALLS: &[Fault] = &[
    Fault::ErrorBefore,
    Fault::CrashBefore,
    Fault::LostAnswer,
    Fault::CrashAfter,
    Fault::StallBefore,
    Fault::StallAfter,
    Fault::Stalled,
];

/// What to sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep {
    /// Where faults are put.
    pub levels: Vec<Level>,
    /// This story only.
    pub script: Option<String>,
    /// This moment only.
    pub at: Option<usize>,
    /// This fault only, by its name in a failure's command.
    pub fault: Option<String>,
    /// Chooses the moments, if not all are swept.
    pub seed: u64,
    /// One moment in so many.
    pub one_in: u64,
}

impl Default for Sweep {
    fn default() -> Self {
        let levels = Level::ALL.to_vec();
        Self { levels, script: None, at: None, fault: None, seed: 0, one_in: 1 }
    }
}

/// What one story has come to at one level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The story.
    pub script: &'static str,
    /// Where faults were put.
    pub level: Level,
    /// Moments that it has.
    pub moments: usize,
    /// How often it was told again.
    pub runs: usize,
    /// How often it ended otherwise, or broke an invariant.
    pub failed: usize,
}

/// A story that did not end as it must.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepFailure {
    /// Arguments of `cargo xtask sim` that tell it again.
    pub command: String,
    /// What was found, first things first.
    pub failures: Vec<String>,
    /// The end of its trace.
    pub lines: Vec<String>,
}

/// What a sweep has come to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// By story and level.
    pub rows: Vec<Row>,
    /// In order of stories, levels and moments.
    pub failures: Vec<SweepFailure>,
}

/// Names of all stories.
pub fn script_names() -> Vec<&'static str> {
    scripts::all().into_iter().map(|script| script.name).collect()
}

/// Names of the faults that a moment of any level can have.
pub fn sweep_fault_names() -> Vec<String> {
    let calls = OF_CALLS.iter().map(|fault| fault.name().replace(' ', "-"));
    calls.chain(["fails", "fails-after", "dies-0", "dies-1"].map(str::to_string)).collect()
}

/// One story at one level with one fault.
struct Job {
    script: usize,
    level: Level,
    target: Option<Target>,
}

/// Tells stories again and again. The result does not depend on the number of threads.
pub fn sweep(what: &Sweep, settings: &Settings) -> Swept {
    let scripts = scripts::all();
    let chosen = |script: &Script| what.script.as_deref().is_none_or(|name| name == script.name);
    let mut first = Vec::new();
    for level in &what.levels {
        let scripts = scripts.iter().enumerate().filter(|(_, script)| chosen(script));
        first.extend(scripts.map(|(script, _)| Job { script, level: *level, target: None }));
    }
    let mut swept = Swept::default();
    let mut jobs = Vec::new();
    for (job, told) in first.iter().zip(in_threads(&first, &scripts, settings)) {
        let targets = what.targets(scripts[job.script].name, job.level, &told.moments);
        swept.add(&scripts, job, &told, targets.len());
        // A story that goes wrong by itself has nothing more to say.
        let targets = if told.failures.is_empty() { targets } else { Vec::new() };
        jobs.extend(targets.into_iter().map(|target| Job { target: Some(target), ..*job }));
    }
    for (job, told) in jobs.iter().zip(in_threads(&jobs, &scripts, settings)) {
        swept.add(&scripts, job, &told, 0);
    }
    swept
}

fn in_threads(jobs: &[Job], scripts: &[Script], settings: &Settings) -> Vec<run::Told> {
    parallel::map(jobs, |job| {
        let seed = job.script as u64;
        run::tell(&scripts[job.script], seed, job.level.store(), job.target, settings)
    })
}

impl Sweep {
    /// The moments of a story, with all that can happen then.
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

/// Moment and fault, as on the command line.
fn describe(target: Target) -> (usize, String) {
    match target {
        Target::Call(at, fault) => (at, fault.name().replace(' ', "-")),
        Target::Statement(at, StatementFault::Before) => (at, "fails".to_string()),
        Target::Statement(at, StatementFault::After) => (at, "fails-after".to_string()),
        Target::Statement(at, StatementFault::DiskFull) => (at, "disk-full".to_string()),
        Target::Poll(node, at) => (usize::try_from(at).unwrap_or(usize::MAX), format!("dies-{node}")),
    }
}

impl Swept {
    fn add(&mut self, scripts: &[Script], job: &Job, told: &run::Told, planned: usize) {
        let script = scripts[job.script].name;
        let failed = usize::from(!told.failures.is_empty());
        match job.target {
            None => {
                let moments = match job.level {
                    Level::Calls | Level::SqliteCalls => told.moments.calls.len(),
                    Level::Statements => told.moments.statements.len(),
                    Level::Polls => {
                        told.moments.polls.iter().map(|polls| usize::try_from(*polls).unwrap_or(0)).sum()
                    }
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
            let (failures, lines) = (told.failures.clone(), told.lines.clone());
            self.failures.push(SweepFailure { command, failures, lines });
        }
    }

    /// How often a story was told again at a level.
    pub fn runs(&self, level: Level) -> usize {
        self.rows.iter().filter(|row| row.level == level).map(|row| row.runs).sum()
    }
}
