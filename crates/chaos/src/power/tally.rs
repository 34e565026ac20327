//! What happened, in numbers.

use super::disk::Place;
use super::wreck::Fates;
use outlast_testkit::counts::Counts;

/// Counts of one world or of many.
#[derive(Debug, Default)]
pub struct Tally {
    /// Power cuts.
    pub cuts: u64,
    /// What was going on when the power went.
    pub(crate) places: Counts<Place>,
    /// Cuts while a store was made from nothing.
    pub cuts_while_created: u64,
    /// Cuts while a store was opened again after a cut.
    pub cuts_while_reopened: u64,
    /// Cuts in the middle of moving the log into the database.
    pub cuts_while_checkpointing: u64,
    /// Unsynced writes and truncations that did not last.
    pub writes_dropped: u64,
    /// Unsynced writes of which parts lasted.
    pub writes_torn: u64,
    /// Unsynced writes and truncations that lasted by luck.
    pub writes_kept: u64,
    /// Creations and deletions of files that did not last.
    pub names_dropped: u64,
    /// Calls that were acknowledged, each counted once.
    pub acknowledged: u64,
    /// Times that an acknowledged call was looked for after a cut.
    pub looked_for: u64,
    /// Acknowledged calls that were gone.
    pub lost: u64,
    /// Instances that were brought to their end.
    pub instances: u64,
}

impl Tally {
    pub(crate) fn cut(&mut self, place: Place, has_opened: bool, is_first: bool) {
        self.cuts += 1;
        self.places.increment(place);
        match (has_opened, is_first) {
            (false, true) => self.cuts_while_created += 1,
            (false, false) => self.cuts_while_reopened += 1,
            // Once there is a log, nothing else writes to the database.
            (true, _) => {
                let is_checkpoint = matches!(place, Place::DatabaseWrite | Place::DatabaseSync);
                self.cuts_while_checkpointing += u64::from(is_checkpoint);
            }
        }
    }

    pub(crate) fn fates(&mut self, fates: Fates) {
        self.writes_dropped += fates.dropped;
        self.writes_torn += fates.torn;
        self.writes_kept += fates.kept;
        self.names_dropped += fates.names_dropped;
    }

    /// Adds the counts of another world.
    pub(crate) fn add(&mut self, other: &Self) {
        self.places.merge(&other.places);
        self.cuts += other.cuts;
        self.cuts_while_created += other.cuts_while_created;
        self.cuts_while_reopened += other.cuts_while_reopened;
        self.cuts_while_checkpointing += other.cuts_while_checkpointing;
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
