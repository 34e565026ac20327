//! The commit log of a worker: the commits that the worker made, readable after the worker was killed.
//!
//! Each worker writes two files: its *counts*, a few numbers that are overwritten, and its *commits*: one line before a
//! commit is sent to the store, one when the store has taken the call and did not answer at once, and one for the answer. A
//! SIGKILL does not lose written lines. A kill is *in a commit* if the killed worker has the second line for a commit and
//! none for its answer.

use outlast::Event;
use outlast_testkit::rng::{DIGEST_START, digest};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The counts of a worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CommitCounts {
    /// Commits that succeeded.
    pub(crate) stored: u64,
    /// Commits that were refused permanently because the lease was lost.
    pub(crate) refused: u64,
    /// Commits that returned a retryable error.
    pub(crate) failed: u64,
    /// Commits that were held back before the store received them.
    pub(crate) held: u64,
}

impl CommitCounts {
    const LEN: usize = 32;

    fn bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let numbers = [self.stored, self.refused, self.failed, self.held];
        for (chunk, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            chunk.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// The counts of a worker; all zero if it never wrote any.
    pub(crate) fn read(folder: &Path, worker: &str) -> Self {
        let bytes = std::fs::read(counts_path(folder, worker)).unwrap_or_default();
        let mut numbers = bytes
            .chunks_exact(8)
            .map(|chunk| chunk.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte)));
        let mut next = || numbers.next().unwrap_or(0);
        Self { stored: next(), refused: next(), failed: next(), held: next() }
    }
}

/// A commit, with the columns that identify it in the store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Commit {
    /// Events of a turn, `first` to `last`.
    Turn { instance: String, execution: u64, first: u64, last: u64, digest: u64 },
    /// The outcome of an activity.
    Activity { instance: String, execution: u64, activity: u64 },
}

impl Commit {
    /// `None` for a turn that adds no event.
    pub(crate) fn of_turn(events: &[Event]) -> Option<Self> {
        let (first, last) = (events.first()?, events.last()?);
        Some(Self::Turn {
            instance: first.instance_id.clone(),
            execution: first.execution_id,
            first: first.event_id,
            last: last.event_id,
            digest: digest_of(events.iter()),
        })
    }

    pub(crate) fn instance(&self) -> &str {
        match self {
            Self::Turn { instance, .. } | Self::Activity { instance, .. } => instance,
        }
    }

    /// The subject: instance, execution, and first event or activity.
    pub(crate) fn subject(&self) -> (&str, u64, u64) {
        match self {
            Self::Turn { instance, execution, first: at, .. }
            | Self::Activity { instance, execution, activity: at } => (instance, *execution, *at),
        }
    }

    fn line(&self) -> String {
        match self {
            Self::Turn { instance, execution, first, last, digest } => {
                format!("T {instance} {execution} {first} {last} {digest}\n")
            }
            Self::Activity { instance, execution, activity } => {
                format!("W {instance} {execution} {activity}\n")
            }
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let (kind, instance) = (words.next()?, words.next()?.to_string());
        let mut number = || words.next()?.parse().ok();
        match kind {
            "T" => Some(Self::Turn {
                instance,
                execution: number()?,
                first: number()?,
                last: number()?,
                digest: number()?,
            }),
            "W" => Some(Self::Activity { instance, execution: number()?, activity: number()? }),
            _ => None,
        }
    }
}

/// The state of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitStep {
    /// The commit is about to be sent to the store.
    Begun,
    /// The store has taken the call, and its answer is open.
    Sent,
    /// The store acknowledged the commit.
    Stored,
    /// The store returned an error, or wrote nothing.
    NotStored,
    /// The caller dropped the call before the answer.
    Dropped,
}

impl CommitStep {
    fn letter(self) -> char {
        match self {
            Self::Begun => 'b',
            Self::Sent => 'o',
            Self::Stored => 's',
            Self::NotStored => 'n',
            Self::Dropped => 'd',
        }
    }
}

/// The commits of one worker or of all workers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CommitRecord {
    pub(crate) acknowledged: Vec<Commit>,
    /// Commits that a worker had begun when it was killed, and for which it had no answer: the store may have them.
    pub(crate) unanswered: Vec<Commit>,
    /// The number of these that the worker had sent.
    pub(crate) sent: usize,
}

impl CommitRecord {
    /// Adds the commits of a worker.
    pub(crate) fn add(&mut self, folder: &Path, worker: &str) -> Result<(), String> {
        let path = commits_path(folder, worker);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            // The worker was killed before it opened its files.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        let (mut open, mut sent) = (BTreeSet::new(), BTreeSet::new());
        for line in text.lines() {
            let damaged = || format!("{}: `{line}`", path.display());
            let (step, commit) = line.split_once(' ').ok_or_else(damaged)?;
            let commit = Commit::parse(commit).ok_or_else(damaged)?;
            match step {
                "b" => _ = open.insert(commit),
                "o" => _ = sent.insert(commit),
                "s" => {
                    open.remove(&commit);
                    sent.remove(&commit);
                    self.acknowledged.push(commit);
                }
                "n" | "d" => {
                    open.remove(&commit);
                    sent.remove(&commit);
                }
                _ => return Err(damaged()),
            }
        }
        self.unanswered.extend(open);
        self.sent += sent.len();
        Ok(())
    }
}

/// The digest of events as they are stored.
pub(crate) fn digest_of<'a>(events: impl Iterator<Item = &'a Event>) -> u64 {
    events.fold(DIGEST_START, |sum, event| {
        let text = outlast_model::json::encode_event(event).unwrap_or_else(|error| error.to_string());
        digest(sum, text.as_bytes())
    })
}

/// The bytes of events as they are stored.
pub(crate) fn size_of(events: &[Event]) -> usize {
    events.iter().map(|event| outlast_model::json::encode_event(event).map_or(0, |text| text.len())).sum()
}

fn counts_path(folder: &Path, worker: &str) -> PathBuf {
    folder.join(format!("{worker}.counts"))
}

fn commits_path(folder: &Path, worker: &str) -> PathBuf {
    folder.join(format!("{worker}.commits"))
}

/// The files of this worker, open for writing.
pub(crate) struct CommitLog {
    counts: Mutex<(File, CommitCounts)>,
    commits: File,
}

impl CommitLog {
    pub(crate) fn create(folder: &Path, worker: &str) -> Result<Self, String> {
        let create = |path: &Path| {
            let file = OpenOptions::new()
                .create(true)
                .append(path == commits_path(folder, worker))
                .write(true)
                .open(path);
            file.map_err(|error| format!("{}: {error}", path.display()))
        };
        let counts = create(&counts_path(folder, worker))?;
        Ok(Self {
            counts: Mutex::new((counts, CommitCounts::default())),
            commits: create(&commits_path(folder, worker))?,
        })
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut CommitCounts)) {
        let mut guard = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, counts) = &mut *guard;
        change(counts);
        // Written under the lock, so that the file never contains older counts. The next write makes up for a
        // failed one, because it writes all counts.
        let _ = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&counts.bytes()));
    }

    /// Writes one line with one call, so that a kill cannot truncate it.
    pub(crate) fn log(&self, step: CommitStep, commit: &Commit) -> std::io::Result<()> {
        (&self.commits).write_all(format!("{} {}", step.letter(), commit.line()).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_commits_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(CommitCounts::read(folder.path(), "w1"), CommitCounts::default());
        let read = || {
            let mut record = CommitRecord::default();
            record.add(folder.path(), "w1").map(|()| record)
        };
        assert_eq!(read(), Ok(CommitRecord::default()));
        let commit_log = CommitLog::create(folder.path(), "w1").unwrap();
        commit_log.change(|counts| (counts.stored, counts.failed, counts.held) = (1_000_000, 3, 7));
        let expected = CommitCounts { stored: 1_000_000, refused: 0, failed: 3, held: 7 };
        assert_eq!(CommitCounts::read(folder.path(), "w1"), expected);

        let turn =
            Commit::Turn { instance: "i".to_string(), execution: 1, first: 2, last: 4, digest: u64::MAX };
        let activity = |id| Commit::Activity { instance: "i::left".to_string(), execution: 1, activity: id };
        let steps = [
            (CommitStep::Begun, &turn),
            (CommitStep::Begun, &activity(2)),
            (CommitStep::Stored, &turn),
            (CommitStep::NotStored, &activity(2)),
            (CommitStep::Begun, &activity(3)),
            (CommitStep::Begun, &activity(4)),
            (CommitStep::Sent, &activity(4)),
            (CommitStep::Dropped, &activity(4)),
            (CommitStep::Begun, &activity(5)),
            (CommitStep::Sent, &activity(5)),
        ];
        steps.iter().for_each(|(step, commit)| commit_log.log(*step, commit).unwrap());
        assert_eq!(
            read(),
            Ok(CommitRecord {
                acknowledged: vec![turn],
                unanswered: vec![activity(3), activity(5)],
                sent: 1
            })
        );
    }
}
