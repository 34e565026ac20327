//! Counts of a power run.

use super::after_cut::UnsyncedCounts;
use super::disk::DiskCall;
use outlast_testkit::counts::Counts;

/// Counts of one run or of many.
#[derive(Debug, Default)]
pub struct CutCounts {
    /// Power cuts.
    pub cuts: u64,
    /// The disk call during which the power was cut.
    pub(crate) cuts_by_call: Counts<DiskCall>,
    /// Cuts while a new store was created.
    pub cuts_while_created: u64,
    /// Cuts while a store was opened again after a cut.
    pub cuts_while_reopened: u64,
    /// Cuts during a checkpoint.
    pub cuts_while_checkpointing: u64,
    /// Cuts while the store preallocated the write-ahead log.
    pub cuts_while_preallocating: u64,
    /// Unsynced writes and truncations that were lost.
    pub writes_dropped: u64,
    /// Unsynced writes that were stored in part.
    pub writes_torn: u64,
    /// Unsynced writes and truncations that were stored.
    pub writes_kept: u64,
    /// Creations and deletions of files that were lost.
    pub names_dropped: u64,
    /// Acknowledged calls, each counted once.
    pub acknowledged: u64,
    /// Number of checks whether an acknowledged call is stored.
    pub looked_for: u64,
    /// Acknowledged calls that were lost.
    pub lost: u64,
    /// Instances that were finished.
    pub instances: u64,
}

impl CutCounts {
    pub(crate) fn cut(&mut self, disk_call: DiskCall, was_opened: bool, is_first: bool) {
        self.cuts += 1;
        self.cuts_by_call.increment(disk_call);
        match (was_opened, is_first) {
            (false, true) => self.cuts_while_created += 1,
            (false, false) => self.cuts_while_reopened += 1,
            // In a store with a log, only a checkpoint writes to the database.
            (true, _) => {
                let is_checkpoint = matches!(disk_call, DiskCall::DatabaseWrite | DiskCall::DatabaseSync);
                self.cuts_while_checkpointing += u64::from(is_checkpoint);
                self.cuts_while_preallocating += u64::from(disk_call == DiskCall::Preallocation);
            }
        }
    }

    pub(crate) fn unsynced(&mut self, unsynced: UnsyncedCounts) {
        self.writes_dropped += unsynced.dropped;
        self.writes_torn += unsynced.torn;
        self.writes_kept += unsynced.kept;
        self.names_dropped += unsynced.names_dropped;
    }

    /// Adds the counts of another run.
    pub(crate) fn add(&mut self, other: &Self) {
        self.cuts_by_call.merge(&other.cuts_by_call);
        self.cuts += other.cuts;
        self.cuts_while_created += other.cuts_while_created;
        self.cuts_while_reopened += other.cuts_while_reopened;
        self.cuts_while_checkpointing += other.cuts_while_checkpointing;
        self.cuts_while_preallocating += other.cuts_while_preallocating;
        self.writes_dropped += other.writes_dropped;
        self.writes_torn += other.writes_torn;
        self.writes_kept += other.writes_kept;
        self.names_dropped += other.names_dropped;
        self.acknowledged += other.acknowledged;
        self.looked_for += other.looked_for;
        self.lost += other.lost;
        self.instances += other.instances;
    }
}
