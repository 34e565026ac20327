//! The jobs in the order of their value, and the packages that each row of the scoreboard is about.

use std::path::Path;

use crate::chunk::Chunk;
use crate::figures::Merge;
use crate::record::Progress;

/// An attempt that runs in chunks. Its name is the name of its row.
pub(crate) struct Job<'a> {
    pub(crate) name: &'a str,
    pub(crate) unit: &'a str,
    /// Units until the job is complete.
    pub(crate) target: u64,
    /// Units of `--quick`.
    pub(crate) quick: u64,
    /// Units of a chunk.
    pub(crate) chunk: u64,
    /// Expected seconds of a chunk, until one has been measured.
    pub(crate) seconds: u64,
    /// The figure that counts the units of a chunk. Without one, a chunk that succeeds has done all of its units.
    pub(crate) counted: Option<&'a str>,
    pub(crate) merge: Merge,
    /// The command line. [`Chunk::words`] fills in the names in braces.
    pub(crate) command: &'a str,
}

pub(crate) const JOBS: &[Job<'static>] = &[
    Job {
        name: "sim",
        unit: "seeds",
        target: 300_000,
        quick: 2_000,
        chunk: 10_000,
        seconds: 900,
        counted: Some("seeds"),
        merge: Merge::Add,
        command: "cargo xtask sim --seeds {from}..{to} --json {file}",
    },
    Job { seconds: 900, command: "cargo xtask sim --score 0..2000 --json {file}", ..whole("score") },
    Job { seconds: 900, command: "cargo xtask sim --sweep all --json {file}", ..whole("sweep") },
    Job {
        seconds: 600,
        command: "OUTLAST_MODEL_DEPTH=deep OUTLAST_MODEL_JSON={file} cargo test --profile sim -p outlast-sim model::",
        ..whole("models")
    },
    Job {
        target: 2_000,
        quick: 50,
        chunk: 250,
        seconds: 180,
        command: "cargo xtask chaos sqlite --kills {size} --seed {seed} --minutes 10 --pace 300 --in-flight 96 --release --json {file}",
        ..kills("chaos")
    },
    Job {
        target: 2_000,
        quick: 50,
        chunk: 250,
        seconds: 180,
        command: "cargo xtask chaos postgres --kills {size} --seed {seed} --minutes 10 --pace 400 --in-flight 96 --release --json {file}",
        ..kills("chaos-postgres")
    },
    // Each chunk has a rig with an empty container: the emulator becomes slower with the documents that it holds.
    Job {
        target: 500,
        quick: 50,
        chunk: 100,
        seconds: 360,
        command: "cargo xtask chaos cosmos --kills {size} --seed {seed} --minutes 15 --pace 900 --in-flight 16 --release --json {file}",
        ..kills("chaos-cosmos")
    },
    Job {
        name: "power",
        unit: "cuts",
        target: 6_000,
        quick: 400,
        chunk: 1_000,
        seconds: 120,
        counted: Some("cuts"),
        merge: Merge::Add,
        command: "cargo xtask chaos power --cuts {size} --seed {from} --json {file}",
    },
    Job {
        name: "fuzz",
        unit: "minutes per target",
        target: 10,
        quick: 1,
        chunk: 2,
        seconds: 900,
        counted: None,
        merge: Merge::Add,
        command: "cargo xtask fuzz --minutes {size} --json {file}",
    },
    Job {
        name: "mutants",
        unit: "shards",
        target: 16,
        quick: 1,
        chunk: 1,
        seconds: 600,
        counted: None,
        merge: Merge::Replace,
        command: "cargo xtask postgres -- cargo xtask mutants --shard {nth}/16 --json {file}",
    },
];

/// A job of one chunk.
const fn whole(name: &str) -> Job<'_> {
    Job {
        name,
        unit: "runs",
        target: 1,
        quick: 1,
        chunk: 1,
        seconds: 0,
        counted: None,
        merge: Merge::Replace,
        command: "",
    }
}

const fn kills(name: &str) -> Job<'_> {
    Job {
        name,
        unit: "kills",
        target: 0,
        quick: 0,
        chunk: 0,
        seconds: 0,
        counted: Some("kills"),
        merge: Merge::Add,
        command: "",
    }
}

impl Job<'_> {
    pub(crate) fn goal(&self, is_quick: bool) -> u64 {
        if is_quick { self.quick } else { self.target }
    }

    /// The next chunk after this progress, or `None` if the goal is reached.
    pub(crate) fn next(&self, progress: Progress, is_quick: bool) -> Option<Chunk> {
        let rest = self.goal(is_quick).checked_sub(progress.done).filter(|rest| *rest > 0)?;
        Some(Chunk { from: progress.done, size: rest.min(self.chunk), nth: progress.chunks })
    }

    /// The command line of the first chunk.
    pub(crate) fn example(&self) -> String {
        let first = Chunk { from: 0, size: self.chunk, nth: 0 };
        let line = first.words(self.command, Path::new("FILE")).join(" ");
        if self.chunk == self.target { format!("`{line}`") } else { format!("chunks such as `{line}`") }
    }

    /// Expected seconds of this many units, at the measured pace.
    pub(crate) fn expected_seconds(&self, units: u64, measured: Option<Progress>) -> u64 {
        let measured = measured.map(|Progress { done, seconds, .. }| (seconds, done));
        let (seconds, done) = measured
            .filter(|(seconds, done)| *seconds > 0 && *done > 0)
            .unwrap_or((self.seconds, self.chunk));
        (units * seconds).div_ceil(done)
    }
}

/// The packages whose code every row exercises.
const CORE: [&str; 7] = ["engine", "memory", "model", "provider", "provider-kit", "runtime", "sqlite"];

/// The folders of the packages that a row is about.
pub(crate) fn packages(row: &str) -> Vec<&'static str> {
    let more: &[&str] = match row {
        "chaos-postgres" => &["postgres"],
        "chaos-cosmos" => &["cosmos"],
        "mutants" => &["cosmos", "postgres"],
        "stress" => &["cli", "postgres"],
        _ => &[],
    };
    CORE.iter().chain(more).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Job<'static> {
        Job { unit: "seeds", target: 25, quick: 3, chunk: 10, seconds: 100, ..whole("a") }
    }

    #[test]
    fn chunks_follow_each_other_until_the_goal() {
        let (job, mut progress) = (job(), Progress::default());
        let mut chunks = Vec::new();
        while let Some(chunk) = job.next(progress, false) {
            chunks.push((chunk.nth, chunk.from, chunk.size));
            progress.done += chunk.size;
            progress.chunks += 1;
        }
        assert_eq!(chunks, [(0, 0, 10), (1, 10, 10), (2, 20, 5)]);
        assert_eq!(job.next(progress, true), None);
    }

    #[test]
    fn a_full_go_continues_after_a_quick_one() {
        let job = job();
        assert_eq!(job.next(Progress::default(), true), Some(Chunk { from: 0, size: 3, nth: 0 }));
        let quick = Progress { done: 3, chunks: 1, seconds: 9 };
        assert_eq!(job.next(quick, true), None);
        assert_eq!(job.next(quick, false), Some(Chunk { from: 3, size: 10, nth: 1 }));
    }

    #[test]
    fn expected_seconds_follow_the_measured_pace() {
        assert_eq!(job().expected_seconds(20, None), 200);
        assert_eq!(job().expected_seconds(20, Some(Progress::default())), 200);
        assert_eq!(job().expected_seconds(20, Some(Progress { done: 5, chunks: 1, seconds: 20 })), 80);
    }

    #[test]
    fn every_job_of_the_table_can_run() {
        for job in JOBS {
            assert!(job.quick > 0 && job.quick <= job.target && job.chunk > 0, "{}", job.name);
            assert!(job.seconds > 0 && job.command.contains("{file}"), "{}", job.name);
        }
    }
}
