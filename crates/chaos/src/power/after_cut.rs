//! The contents of the disk after a power cut.
//!
//! Every name and every unsynced change is kept, dropped or torn independently, so changes reach the disk in any order.
//! A write can be torn anywhere; bytes outside it do not change, which SQLite assumes (`SQLITE_POWERSAFE_OVERWRITE`)
//! and drives guarantee. Synced bytes never change.

use super::disk::{Disk, Images};
use super::file::{Apply, Change, Inode};
use outlast_testkit::rng::Rng;
use std::collections::BTreeMap;

const SECTOR: usize = 512;

/// The files after a cut, and counts of unsynced changes.
pub(crate) struct DiskAfterCut {
    pub(crate) images: Images,
    pub(crate) unsynced: UnsyncedCounts,
}

/// Counts of unsynced changes by their fate.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UnsyncedCounts {
    pub(crate) kept: u64,
    pub(crate) dropped: u64,
    pub(crate) torn: u64,
    /// Creations and deletions that were lost.
    pub(crate) names_dropped: u64,
}

/// The probabilities with which one cut keeps or tears each unsynced change. They differ between cuts, so that some cuts lose all
/// unsynced changes and other cuts lose none.
struct Severity {
    keep_per_mille: u64,
    tear_per_mille: u64,
}

impl Disk {
    /// The files on the disk when the power is back.
    pub(crate) fn after_power_cut(&self, rng: &mut Rng) -> DiskAfterCut {
        let severity = Severity {
            keep_per_mille: rng.pick(&[0, 100, 500, 900, 1_000]),
            tear_per_mille: rng.pick(&[0, 200, 600]),
        };
        let state = self.state();
        let mut unsynced = UnsyncedCounts::default();
        let mut images = BTreeMap::new();
        for (name, versions) in &state.names {
            let all: Vec<Option<usize>> =
                [versions.durable].into_iter().chain(versions.unsynced.iter().copied()).collect();
            let chosen = rng.index(all.len());
            unsynced.names_dropped += (all.len() - 1 - chosen) as u64;
            if let Some(inode) = all[chosen] {
                images.insert(
                    name.clone(),
                    bytes_after_cut(&state.inodes[inode], &severity, rng, &mut unsynced),
                );
            }
        }
        drop(state);
        self.add_wal_index(&mut images, rng);
        DiskAfterCut { images, unsynced }
    }

    /// The index of the log is never synced: after a cut it is missing, random, or as the running machine had it.
    fn add_wal_index(&self, images: &mut Images, rng: &mut Rng) {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.ends_with("-shm") {
                continue;
            }
            match rng.below(3) {
                0 => {}
                1 => drop(images.insert(name, random_bytes(rng, 32_768))),
                _ => drop(std::fs::read(entry.path()).map(|bytes| images.insert(name, bytes))),
            }
        }
    }
}

fn bytes_after_cut(
    inode: &Inode,
    severity: &Severity,
    rng: &mut Rng,
    unsynced: &mut UnsyncedCounts,
) -> Vec<u8> {
    let mut bytes = inode.durable.clone();
    for change in &inode.unsynced {
        if rng.per_mille(severity.tear_per_mille)
            && let Change::Write { at, bytes: new } = change
        {
            unsynced.torn += 1;
            tear(&mut bytes, *at, new, rng);
        } else if rng.per_mille(severity.keep_per_mille) {
            unsynced.kept += 1;
            bytes.apply(change.clone());
        } else {
            unsynced.dropped += 1;
        }
    }
    bytes
}

/// Applies parts of a write.
fn tear(file: &mut Vec<u8>, at: usize, new: &[u8], rng: &mut Rng) {
    let end = at + new.len();
    if file.len() < end {
        // The file may have grown before its data was written; then it contains old bytes of the disk there.
        let old = file.len();
        file.resize(end, 0);
        if rng.per_mille(500) {
            file[old..].copy_from_slice(&random_bytes(rng, end - old));
        }
    }
    let cut = rng.index(new.len() + 1);
    match rng.below(3) {
        0 => file[at..at + cut].copy_from_slice(&new[..cut]),
        1 => file[at + cut..end].copy_from_slice(&new[cut..]),
        _ => tear_by_sector(file, at, new, rng),
    }
}

fn tear_by_sector(file: &mut [u8], at: usize, new: &[u8], rng: &mut Rng) {
    let mut from = at;
    while from < at + new.len() {
        let to = ((from / SECTOR + 1) * SECTOR).min(at + new.len());
        match rng.below(5) {
            0 | 1 => file[from..to].copy_from_slice(&new[from - at..to - at]),
            2 | 3 => {}
            _ => file[from..to].copy_from_slice(&random_bytes(rng, to - from)),
        }
        from = to;
    }
}

fn random_bytes(rng: &mut Rng, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend_from_slice(&rng.next_u64().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_write_changes_only_its_own_range() {
        for seed in 0..500 {
            let mut rng = Rng::new(seed);
            let mut file = vec![1; 3_000];
            tear(&mut file, 700, &[2; 1_500], &mut rng);
            assert_eq!(file.len(), 3_000);
            assert!(file[..700].iter().chain(&file[2_200..]).all(|byte| *byte == 1), "seed {seed}");
        }
    }

    #[test]
    fn writes_are_torn_at_both_ends_and_by_sector() {
        let torn = |seed| {
            let mut file = vec![1; 2_048];
            tear(&mut file, 0, &[2; 2_048], &mut Rng::new(seed));
            file
        };
        let files: Vec<Vec<u8>> = (0..200).map(torn).collect();
        let is_mixed = |file: &&Vec<u8>| file.contains(&1) && file.contains(&2);
        assert!(files.iter().filter(is_mixed).count() > 100);
        assert!(files.iter().any(|file| file.iter().any(|byte| *byte > 2)), "some sectors hold random bytes");
        assert!(files.iter().any(|file| file[0] == 2 && file[2_047] == 1), "some lost their end");
        assert!(files.iter().any(|file| file[0] == 1 && file[2_047] == 2), "some lost their start");
    }

    #[test]
    fn synced_bytes_stay_and_unsynced_changes_are_kept_dropped_or_torn() {
        let inode = Inode {
            durable: vec![7; 100],
            unsynced: vec![Change::Write { at: 50, bytes: vec![8; 100] }, Change::Resize(120)],
        };
        let severity = Severity { keep_per_mille: 500, tear_per_mille: 300 };
        let mut unsynced = UnsyncedCounts::default();
        let mut lengths = std::collections::BTreeSet::new();
        for seed in 0..300 {
            let bytes = bytes_after_cut(&inode, &severity, &mut Rng::new(seed), &mut unsynced);
            assert!(bytes[..50].iter().all(|byte| *byte == 7));
            lengths.insert(bytes.len());
        }
        assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [100, 120, 150]);
        assert!(unsynced.kept > 0 && unsynced.dropped > 0 && unsynced.torn > 0, "{unsynced:?}");
    }
}
