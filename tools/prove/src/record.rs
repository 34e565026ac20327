//! The record of a row: its figures, the commit and the code of its runs, and how far its job is.

use std::fmt;
use std::path::Path;

use outlast_packages::code::Hashes;
use outlast_toolkit::files;
use serde::{Deserialize, Serialize};

use crate::figures::Figures;
use crate::jobs::{self, Job};
use crate::stamp::Stamp;

/// A record, as its file holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The stamp of the last chunk; dirty if the tree of any chunk was dirty.
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) figures: Figures,
    /// `None` if one command by hand wrote the figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) progress: Option<Progress>,
    /// The chunks that failed on this code. A record whose code has changed starts again without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) failures: Vec<Failure>,
}

/// A chunk that failed. The attempts of some jobs are not deterministic: the same chunk may succeed when it is repeated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// The command line; `FILE` stands for the file of the figures.
    pub(crate) command: String,
    pub(crate) date: String,
    pub(crate) commit: String,
}

/// The part of a job that is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Progress {
    pub(crate) done: u64,
    pub(crate) chunks: u64,
    /// Duration of the chunks.
    pub(crate) seconds: u64,
}

/// Whether shipped code differs from the code of a record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Change {
    No,
    /// The code of these packages differs.
    In(Vec<&'static str>),
    /// The record has no hashes.
    Unknown,
}

impl Record {
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// The record of a row, if the row has one.
    pub(crate) fn read(board: &Path, row: &str) -> Result<Option<Self>, String> {
        let path = board.join(format!("{row}.json"));
        path.exists().then(|| Self::parse(&path, &files::read(&path)?)).transpose()
    }

    pub(crate) fn write(&self, board: &Path, row: &str) -> Result<(), String> {
        let path = board.join(format!("{row}.json"));
        let value = serde_json::to_value(self).map_err(|error| format!("{}: {error}", path.display()))?;
        // A go may be stopped at any moment: a record is replaced whole.
        let new = board.join(format!("{row}.new"));
        files::write(&new, &format!("{value:#}\n"))?;
        std::fs::rename(&new, &path).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Whether the shipped code of a row differs from the code of this record.
    pub(crate) fn change(&self, row: &str, code: &Hashes) -> Change {
        let recorded = &self.stamp.code;
        if recorded.is_empty() {
            return Change::Unknown;
        }
        let mut changed = jobs::packages(row);
        changed.retain(|name| recorded.get(*name) != code.get(*name));
        if changed.is_empty() { Change::No } else { Change::In(changed) }
    }

    /// The part of the job that is done on this code.
    pub(crate) fn progress(&self, job: &Job<'_>, code: &Hashes) -> Progress {
        match (self.change(job.name, code), self.progress) {
            (Change::No, Some(progress)) => progress,
            (Change::No, None) => {
                let counted = job.counted.map_or(Some(job.target), |key| self.figures.get(key)?.as_u64());
                Progress { done: counted.unwrap_or_default(), chunks: 1, seconds: 0 }
            }
            _ => Progress::default(),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::No => f.write_str("no"),
            Self::In(packages) => write!(f, "yes ({})", packages.join(", ")),
            Self::Unknown => f.write_str("yes (the record has no hash of the code)"),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::jobs::JOBS;

    /// A code in which all packages have the same hash.
    pub(crate) fn code(hash: &str) -> Hashes {
        let packages = ["chaos-postgres", "chaos-cosmos"].into_iter().flat_map(jobs::packages);
        packages.map(|name| (name.to_string(), hash.to_string())).collect()
    }

    pub(crate) fn record(row: &str, hash: &str, seeds: u64) -> Record {
        let stamp = Stamp {
            commit: "abc".to_string(),
            date: "2026-01-02".to_string(),
            dirty: false,
            code: code(hash),
        };
        let figures = [("seeds".to_string(), seeds.into())].into_iter().collect();
        Record {
            stamp: stamp.of_row(row),
            figures,
            progress: Some(Progress { done: seeds, chunks: 1, seconds: 5 }),
            failures: Vec::new(),
        }
    }

    pub(crate) fn failure() -> Failure {
        Failure {
            command: "cargo xtask sim --seeds 0..10 --json FILE".to_string(),
            date: "2026-01-03".to_string(),
            commit: "def".to_string(),
        }
    }

    #[test]
    fn only_changes_of_the_packages_of_a_row_count() {
        let mut now = code("1");
        now.insert("postgres".to_string(), "2".to_string());
        now.insert("server".to_string(), "2".to_string());
        assert_eq!(record("sweep", "1", 7).change("sweep", &now), Change::No);
        let change = record("chaos-postgres", "1", 7).change("chaos-postgres", &now);
        assert_eq!(change, Change::In(vec!["postgres"]));
        assert_eq!(change.to_string(), "yes (postgres)");
    }

    #[test]
    fn a_record_without_hashes_counts_as_changed() {
        let text = r#"{"commit": "abc", "date": "2026-01-02", "figures": {"seeds": 7}}"#;
        let record = Record::parse(Path::new("sim.json"), text).unwrap();
        assert_eq!(record.change("sim", &code("1")), Change::Unknown);
        assert_eq!(record.progress(&JOBS[0], &code("1")), Progress::default());
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Record::read(folder.path(), "sim"), Ok(None));
        let mut record = record("sim", "1", 7);
        for failures in [Vec::new(), vec![failure()]] {
            record.failures = failures;
            record.write(folder.path(), "sim").unwrap();
            assert_eq!(Record::read(folder.path(), "sim"), Ok(Some(record.clone())));
        }
    }

    #[test]
    fn progress_is_lost_with_a_change_and_taken_from_figures_without_chunks() {
        let mut record = record("sim", "1", 7);
        assert_eq!(record.progress(&JOBS[0], &code("1")).done, 7);
        assert_eq!(record.progress(&JOBS[0], &code("2")), Progress::default());
        record.progress = None;
        record.figures.insert("seeds".to_string(), 9.into());
        assert_eq!(record.progress(&JOBS[0], &code("1")).done, 9);
    }
}
