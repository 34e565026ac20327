//! Counts of calls and faults, by operation.

use crate::fault::Fault;
use outlast_testkit::counts::Counts;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Counts of one world or of many.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    calls: Counts<&'static str>,
    faults: Counts<(&'static str, Fault)>,
    process: Counts<Fault>,
    /// Leases that ended or were taken over before their turn or activity was committed.
    pub leases_lost: u64,
    /// Commits that were made and whose answer was lost.
    pub commits_in_doubt: u64,
    /// Committed turns.
    pub turns: u64,
    /// Turns that ran a second time from a cold start and were compared.
    pub turns_compared: u64,
    /// Histories that were replayed from their first event.
    pub replays: u64,
    /// Instances at the end of their worlds.
    pub instances: u64,
    /// Messages that are left for instances that were never started.
    pub orphans: u64,
    /// Resets and forks.
    pub resets: u64,
    /// The most records that the audit of a world had.
    pub most_records: u64,
    /// Virtual time.
    pub virtual_ms: u64,
    /// Outputs that were compared with the expected ones.
    pub outputs_judged: u64,
    /// Outputs that a cancellation or a poisoned activity or child explains.
    pub outputs_not_judged: u64,
    /// Number of worlds by their store.
    pub worlds: Counts<&'static str>,
    /// How often a process opened a store that no other process had open, and recovered its log.
    pub recoveries: u64,
    /// How often a process opened the file while a process outside of the world held its write lock.
    pub busy_openings: u64,
    /// Calls that waited for the write lock of a busy file, or were refused because of it.
    pub calls_at_busy_files: u64,
    /// Activities that contradicted the mark of their delay, because the store's clock was set back behind the time at which they were
    /// stored.
    pub rows_ahead_of_clock: u64,
    /// Worlds in which no event came for longer than an item may wait, and at most for the time that workers may be in use.
    pub worlds_of_long_waits: u64,
}

/// Faults of single calls.
const COLUMNS: &[Fault] = &[
    Fault::ErrorBefore,
    Fault::LostAnswer,
    Fault::StallBefore,
    Fault::StallAfter,
    Fault::CrashBefore,
    Fault::CrashAfter,
    Fault::ShortLease,
    Fault::Duplicate,
    Fault::Statement,
    Fault::StatementDone,
    Fault::Busy,
];

impl Tally {
    pub(crate) fn called(&mut self, op: &'static str) {
        self.calls.increment(op);
    }

    pub(crate) fn injected(&mut self, op: &'static str, fault: Fault) {
        self.faults.increment((op, fault));
    }

    pub(crate) fn happened(&mut self, fault: Fault) {
        self.process.increment(fault);
    }

    /// Adds the faults of connections.
    pub(crate) fn links(&mut self, happened: &Counts<Fault>) {
        self.commits_in_doubt += happened.get(&Fault::LinkLostAfter);
        self.process.merge(happened);
    }

    /// Adds the failed statements, by their verb.
    pub(crate) fn statements(&mut self, injected: &Counts<(&'static str, Fault)>) {
        self.commits_in_doubt += injected.get(&("sql commit", Fault::StatementDone));
        self.faults.merge(injected);
    }

    /// How often each fault happened.
    pub fn by_fault(&self) -> Counts<Fault> {
        let mut all = self.process.clone();
        self.faults.iter().for_each(|((_, fault), count)| all.add(*fault, *count));
        all
    }

    fn ops(&self) -> BTreeSet<&'static str> {
        self.calls.keys().copied().chain(self.faults.keys().map(|cell| cell.0)).collect()
    }

    /// Pairs of call and fault that occurred less often than this.
    pub fn thin_cells(&self, least: u64) -> Vec<String> {
        let mut thin = Vec::new();
        for (op, fault) in self.ops().into_iter().flat_map(|op| COLUMNS.iter().map(move |fault| (op, *fault)))
        {
            let count = self.faults.get(&(op, fault));
            if fault.applies_to(op) && count < least {
                thin.push(format!("{op} x {} ({count})", fault.name()));
            }
        }
        thin
    }

    /// Whether the world counts: a lease was lost or a commit was in doubt.
    pub fn is_counted(&self) -> bool {
        self.leases_lost > 0 || self.commits_in_doubt > 0
    }

    /// Number of all faults.
    pub fn fault_count(&self) -> u64 {
        self.faults.total() + self.process.total()
    }

    /// Adds the counts of another world.
    pub fn add(&mut self, other: &Self) {
        self.calls.merge(&other.calls);
        self.faults.merge(&other.faults);
        self.process.merge(&other.process);
        self.leases_lost += other.leases_lost;
        self.commits_in_doubt += other.commits_in_doubt;
        self.turns += other.turns;
        self.turns_compared += other.turns_compared;
        self.replays += other.replays;
        self.instances += other.instances;
        self.orphans += other.orphans;
        self.resets += other.resets;
        self.most_records = self.most_records.max(other.most_records);
        self.virtual_ms += other.virtual_ms;
        self.outputs_judged += other.outputs_judged;
        self.outputs_not_judged += other.outputs_not_judged;
        self.worlds.merge(&other.worlds);
        self.recoveries += other.recoveries;
        self.busy_openings += other.busy_openings;
        self.calls_at_busy_files += other.calls_at_busy_files;
        self.rows_ahead_of_clock += other.rows_ahead_of_clock;
        self.worlds_of_long_waits += other.worlds_of_long_waits;
    }

    /// A table with a row for each operation and a column for each fault. A dash marks a fault that cannot happen to
    /// the operation.
    pub fn table(&self) -> String {
        let columns: BTreeSet<Fault> = self.faults.keys().map(|(_, fault)| *fault).collect();
        let mut out = format!("{:<16}{:>10}", "operation", "calls");
        for fault in &columns {
            let _ = write!(out, "{:>15}", fault.name());
        }
        for op in self.ops() {
            let _ = write!(out, "\n{op:<16}{:>10}", self.calls.get(&op));
            for fault in &columns {
                match self.faults.get(&(op, *fault)) {
                    0 if !fault.applies_to(op) => out.push_str("              -"),
                    count => drop(write!(out, "{count:>15}")),
                }
            }
        }
        for (fault, count) in &self.process {
            let _ = write!(out, "\n{:<16}{count:>10}", fault.name());
        }
        out
    }
}
