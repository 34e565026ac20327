//! How much trouble the worlds met: calls and faults, by operation.

use crate::plan::Fault;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Counts of one world, or of many.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    calls: BTreeMap<&'static str, u64>,
    faults: BTreeMap<(&'static str, Fault), u64>,
    process: BTreeMap<Fault, u64>,
    /// Leases that ran out or were taken over while somebody worked under them.
    pub leases_lost: u64,
    /// Commits whose caller never learnt that they were made.
    pub commits_in_doubt: u64,
    /// Turns that were committed.
    pub turns: u64,
    /// Turns that were run a second time from a cold start, and compared.
    pub turns_compared: u64,
    /// Histories that were replayed from their first event at a random moment.
    pub replays: u64,
    /// Instances that were followed to their end.
    pub instances: u64,
    /// Virtual time.
    pub virtual_ms: u64,
}

impl Tally {
    pub(crate) fn called(&mut self, op: &'static str) {
        *self.calls.entry(op).or_default() += 1;
    }

    pub(crate) fn injected(&mut self, op: &'static str, fault: Fault) {
        *self.faults.entry((op, fault)).or_default() += 1;
    }

    pub(crate) fn happened(&mut self, fault: Fault) {
        *self.process.entry(fault).or_default() += 1;
    }

    /// A world in which nothing could go wrong proves nothing.
    pub fn met_trouble(&self) -> bool {
        self.leases_lost > 0 || self.commits_in_doubt > 0
    }

    /// Faults of all kinds.
    pub fn fault_count(&self) -> u64 {
        self.faults.values().chain(self.process.values()).sum()
    }

    /// Adds the counts of another world.
    pub fn add(&mut self, other: &Self) {
        other.calls.iter().for_each(|(op, count)| *self.calls.entry(op).or_default() += count);
        other.faults.iter().for_each(|(cell, count)| *self.faults.entry(*cell).or_default() += count);
        other.process.iter().for_each(|(fault, count)| *self.process.entry(*fault).or_default() += count);
        self.leases_lost += other.leases_lost;
        self.commits_in_doubt += other.commits_in_doubt;
        self.turns += other.turns;
        self.turns_compared += other.turns_compared;
        self.replays += other.replays;
        self.instances += other.instances;
        self.virtual_ms += other.virtual_ms;
    }

    /// Operations down, faults across.
    pub fn table(&self) -> String {
        let columns: BTreeSet<Fault> = self.faults.keys().map(|(_, fault)| *fault).collect();
        let mut out = format!("{:<22}{:>10}", "operation", "calls");
        for fault in &columns {
            let _ = write!(out, "{:>14}", fault.name());
        }
        for (op, calls) in &self.calls {
            let _ = write!(out, "\n{op:<22}{calls:>10}");
            for fault in &columns {
                let _ = write!(out, "{:>14}", self.faults.get(&(*op, *fault)).copied().unwrap_or(0));
            }
        }
        for (fault, count) in &self.process {
            let _ = write!(out, "\n{:<22}{count:>10}", fault.name());
        }
        out
    }
}
