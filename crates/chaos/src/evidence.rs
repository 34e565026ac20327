//! What a worker leaves behind about its commits, for those who look at it when it is dead.
//!
//! Two files per process: its *state*, a few numbers that are overwritten, and its *acknowledgements*, a line for every
//! commit that the store was given and one for its answer. What was written before a SIGKILL stays.

use outlast::Event;
use outlast_testkit::rng::{DIGEST_START, digest};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The numbers of a worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// Commits that the store was given and whose callers have no answer.
    pub(crate) in_flight: u64,
    /// Commits that succeeded.
    pub(crate) stored: u64,
    /// Commits that were refused for good: a lease that was lost.
    pub(crate) refused: u64,
    /// Commits whose outcome was unknown, or that did not fit.
    pub(crate) failed: u64,
    /// Commits that were held before the store was given them.
    pub(crate) held: u64,
}

impl State {
    const LEN: usize = 40;

    fn bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let numbers = [self.in_flight, self.stored, self.refused, self.failed, self.held];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// The numbers of a process, all zero if it never got so far.
    pub(crate) fn read(folder: &Path, worker: &str) -> Self {
        let bytes = std::fs::read(state_path(folder, worker)).unwrap_or_default();
        let mut numbers = bytes
            .chunks_exact(8)
            .map(|place| place.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte)));
        let mut next = || numbers.next().unwrap_or(0);
        Self { in_flight: next(), stored: next(), refused: next(), failed: next(), held: next() }
    }
}

/// A commit, as it is found again in the store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ack {
    /// Events of a turn, `first` to `last`.
    Turn { instance: String, execution: u64, first: u64, last: u64, digest: u64 },
    /// The outcome of an activity.
    Work { instance: String, execution: u64, activity: u64 },
}

impl Ack {
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
            Self::Turn { instance, .. } | Self::Work { instance, .. } => instance,
        }
    }

    /// What it is about: the execution, and the first event or the activity.
    pub(crate) fn place(&self) -> (&str, u64, u64) {
        match self {
            Self::Turn { instance, execution, first: at, .. }
            | Self::Work { instance, execution, activity: at } => (instance, *execution, *at),
        }
    }

    fn line(&self) -> String {
        match self {
            Self::Turn { instance, execution, first, last, digest } => {
                format!("T {instance} {execution} {first} {last} {digest}\n")
            }
            Self::Work { instance, execution, activity } => format!("W {instance} {execution} {activity}\n"),
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
            "W" => Some(Self::Work { instance, execution: number()?, activity: number()? }),
            _ => None,
        }
    }
}

/// What became of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The store was given it.
    Begun,
    /// The store said yes.
    Stored,
    /// The store said anything else.
    NotStored,
}

impl Step {
    fn letter(self) -> char {
        match self {
            Self::Begun => 'b',
            Self::Stored => 's',
            Self::NotStored => 'n',
        }
    }
}

/// What one worker wrote down, or all of them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) acknowledged: Vec<Ack>,
    /// Commits that were given to the store by a worker that was killed before the answer.
    pub(crate) unanswered: Vec<Ack>,
}

impl Record {
    /// Adds what a worker wrote.
    pub(crate) fn add(&mut self, folder: &Path, worker: &str) -> Result<(), String> {
        let path = acks_path(folder, worker);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            // Killed before it could open its files.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        let mut open = BTreeSet::new();
        for line in text.lines() {
            let damaged = || format!("{}: `{line}`", path.display());
            let (step, commit) = line.split_once(' ').ok_or_else(damaged)?;
            let commit = Ack::parse(commit).ok_or_else(damaged)?;
            match step {
                "b" => _ = open.insert(commit),
                "s" => {
                    open.remove(&commit);
                    self.acknowledged.push(commit);
                }
                "n" => _ = open.remove(&commit),
                _ => return Err(damaged()),
            }
        }
        self.unanswered.extend(open);
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

fn state_path(folder: &Path, worker: &str) -> PathBuf {
    folder.join(format!("{worker}.state"))
}

fn acks_path(folder: &Path, worker: &str) -> PathBuf {
    folder.join(format!("{worker}.acks"))
}

/// The files of this process, open for writing.
pub(crate) struct Evidence {
    state: Mutex<(File, State)>,
    acks: File,
}

impl Evidence {
    pub(crate) fn create(folder: &Path, worker: &str) -> Result<Self, String> {
        let create = |path: &Path| {
            let file = OpenOptions::new()
                .create(true)
                .append(path == acks_path(folder, worker))
                .write(true)
                .open(path);
            file.map_err(|error| format!("{}: {error}", path.display()))
        };
        let state = create(&state_path(folder, worker))?;
        Ok(Self { state: Mutex::new((state, State::default())), acks: create(&acks_path(folder, worker))? })
    }

    /// A commit goes to the store. Until the value is dropped, its caller has no answer.
    pub(crate) fn begin(&self) -> InFlight<'_> {
        self.change(|state| state.in_flight += 1);
        InFlight(self)
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut State)) {
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, state) = &mut *guard;
        change(state);
        // Written under the lock, so that the file never goes back. Without it a kill counts as outside of a commit.
        let _ = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&state.bytes()));
    }

    /// One write of one line, so that a kill cannot cut it.
    pub(crate) fn note(&self, step: Step, commit: &Ack) -> std::io::Result<()> {
        (&self.acks).write_all(format!("{} {}", step.letter(), commit.line()).as_bytes())
    }
}

pub(crate) struct InFlight<'a>(&'a Evidence);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.change(|state| state.in_flight -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_worker_wrote_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(State::read(folder.path(), "w1"), State::default());
        let read = || {
            let mut record = Record::default();
            record.add(folder.path(), "w1").map(|()| record)
        };
        assert_eq!(read(), Ok(Record::default()));
        let evidence = Evidence::create(folder.path(), "w1").unwrap();
        let first = evidence.begin();
        let second = evidence.begin();
        evidence.change(|state| (state.stored, state.failed, state.held) = (1_000_000, 3, 7));
        drop(first);
        let expected = State { in_flight: 1, stored: 1_000_000, refused: 0, failed: 3, held: 7 };
        assert_eq!(State::read(folder.path(), "w1"), expected);
        drop(second);
        assert_eq!(State::read(folder.path(), "w1").in_flight, 0);

        let turn = Ack::Turn { instance: "i".to_string(), execution: 1, first: 2, last: 4, digest: u64::MAX };
        let work = |activity| Ack::Work { instance: "i::left".to_string(), execution: 1, activity };
        let steps = [
            (Step::Begun, &turn),
            (Step::Begun, &work(2)),
            (Step::Stored, &turn),
            (Step::NotStored, &work(2)),
            (Step::Begun, &work(3)),
        ];
        steps.iter().for_each(|(step, commit)| evidence.note(*step, commit).unwrap());
        assert_eq!(read(), Ok(Record { acknowledged: vec![turn], unanswered: vec![work(3)] }));
    }
}
