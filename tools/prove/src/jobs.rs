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
    /// Units of `--quick`; 0 leaves the job out.
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
    Job {
        unit: "defects",
        target: 102,
        quick: 9,
        chunk: 30,
        seconds: 300,
        command: "cargo xtask sim --score 0..2000 --defects {from}..{to} --page docs/internals/defects.md --json {file}",
        ..counted("score", "defects")
    },
    Job {
        unit: "scripts",
        target: 37,
        quick: 3,
        chunk: 10,
        seconds: 250,
        command: "cargo xtask sim --sweep all --scripts {from}..{to} --json {file}",
        ..counted("sweep", "scripts")
    },
    // The first chunk has the depth of a test run.
    Job {
        unit: "depths",
        target: 2,
        quick: 1,
        seconds: 240,
        merge: Merge::Replace,
        command: "OUTLAST_MODEL_DEPTH={depth} OUTLAST_MODEL_JSON={file} cargo test --profile sim -p outlast-sim model::",
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
        quick: 25,
        chunk: 100,
        seconds: 360,
        command: "cargo xtask chaos cosmos --kills {size} --seed {seed} --minutes 15 --pace 900 --in-flight 16 --release --json {file}",
        ..kills("chaos-cosmos")
    },
    Job {
        unit: "cuts",
        target: 6_000,
        quick: 400,
        chunk: 1_000,
        seconds: 120,
        command: "cargo xtask chaos power --cuts {size} --seed {from} --json {file}",
        ..counted("power", "cuts")
    },
    Job {
        unit: "sequences",
        target: 1_000_000,
        quick: 20_000,
        chunk: 250_000,
        seconds: 300,
        command: "OUTLAST_SCHEDULER_CASES={size} OUTLAST_SCHEDULER_SEED={seed} OUTLAST_SCHEDULER_JSON={file} \
                  cargo test --profile sim -p outlast-postgres --all-features --lib generated_events",
        ..counted("scheduler", "sequences")
    },
    Job {
        target: 50_000,
        quick: 1_000,
        chunk: 10_000,
        seconds: 600,
        command: "OUTLAST_MODEL_CASES={size} OUTLAST_MODEL_SEED={seed} OUTLAST_COMPARISON_JSON={file} \
                  cargo test --profile sim -p outlast-sqlite --all-features --test it model::agrees",
        ..comparison("compare-sqlite")
    },
    Job {
        target: 5_000,
        quick: 50,
        chunk: 1_000,
        seconds: 600,
        command: "OUTLAST_MODEL_CASES={size} OUTLAST_MODEL_SEED={seed} OUTLAST_COMPARISON_JSON={file} \
                  cargo xtask postgres -- cargo test --profile sim -p outlast-postgres --all-features --test it model::agrees",
        ..comparison("compare-postgres")
    },
    Job {
        target: 200,
        quick: 4,
        chunk: 50,
        seconds: 600,
        command: "OUTLAST_MODEL_CASES={size} OUTLAST_MODEL_SEED={seed} OUTLAST_COMPARISON_JSON={file} \
                  cargo test --profile sim -p outlast-cosmos --all-features --test it model::agrees",
        ..comparison("compare-cosmos")
    },
    Job {
        quick: 0,
        seconds: 1_800,
        command: "OUTLAST_COSMOS_SWEEP=full OUTLAST_COSMOS_SWEEP_JSON={file} \
                  cargo test --profile sim -p outlast-cosmos --all-features --test it -- faults:: model::leases",
        ..whole("cosmos-faults")
    },
    Job {
        unit: "seconds per target",
        target: 600,
        quick: 15,
        chunk: 120,
        seconds: 1_200,
        merge: Merge::Add,
        command: "cargo xtask fuzz --seconds {size} --json {file}",
        ..whole("fuzz")
    },
    Job {
        quick: 0,
        seconds: 400,
        command: "cargo xtask chaos flood sqlite --messages 1000 --release --json {file}",
        ..whole("flood")
    },
    Job {
        quick: 0,
        seconds: 400,
        command: "cargo xtask chaos flood postgres --messages 600 --release --json {file}",
        ..whole("flood-postgres")
    },
    Job {
        quick: 0,
        seconds: 600,
        command: "cargo xtask postgres -- sh -c 'rm -f target/stress.db* && cargo run -q --release -p outlast-cli -- stress --store memory \
                  --store sqlite::memory: --store sqlite:target/stress.db --store $OUTLAST_TEST_POSTGRES_URL --pool-size 2,10,20 \
                  --preset baseline,default,wide,large-payload --check --json {file}'",
        ..whole("stress")
    },
    Job {
        unit: "shards",
        target: 16,
        quick: 0,
        seconds: 600,
        merge: Merge::Replace,
        command: "cargo xtask postgres -- cargo xtask mutants --shard {nth}/16 --json {file}",
        ..whole("mutants")
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
        merge: Merge::Add,
        command: "",
    }
}

/// A job whose chunks count their units with this figure.
const fn counted<'a>(name: &'a str, figure: &'a str) -> Job<'a> {
    Job { counted: Some(figure), ..whole(name) }
}

const fn kills(name: &str) -> Job<'_> {
    Job { unit: "kills", ..counted(name, "kills") }
}

/// Random sequences of calls on a store and on the memory store.
const fn comparison(name: &str) -> Job<'_> {
    Job { unit: "sequences", ..counted(name, "sequences") }
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
        let line = first.line(self.command, Path::new("FILE"));
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

/// The packages that a process with the memory store and the SQLite store exercises.
const CORE: &[&str] = &["engine", "lens", "memory", "model", "provider", "provider-kit", "runtime", "sqlite"];
/// The packages that a program of a user has beside those.
const FACADE: &[&str] = &["author", "macros", "outlast"];
/// The packages that a comparison of a store with the memory store exercises.
const STORE: &[&str] = &["memory", "model", "provider", "provider-kit"];

/// The folders of the packages that a row is about.
pub(crate) fn packages(row: &str) -> Vec<&'static str> {
    let parts: &[&[&str]] = match row {
        "chaos" | "flood" | "power" => &[CORE, FACADE],
        "sim" | "score" => &[CORE, &["postgres"]],
        "chaos-postgres" | "flood-postgres" => &[CORE, FACADE, &["postgres"]],
        "chaos-cosmos" => &[CORE, FACADE, &["cosmos"]],
        "stress" => &[CORE, FACADE, &["cli", "conformance", "postgres"]],
        "compare-sqlite" => &[STORE, &["sqlite"]],
        "compare-postgres" => &[STORE, &["postgres"]],
        "compare-cosmos" | "cosmos-faults" => &[STORE, &["cosmos"]],
        "scheduler" => &[&["model", "postgres", "provider", "provider-kit"]],
        "fuzz" => &[CORE, &["cosmos", "postgres", "server"]],
        "mutants" => &[CORE, &["cosmos", "postgres"]],
        _ => &[CORE],
    };
    parts.concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_toolkit::{files, process};
    use std::collections::BTreeSet;

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
            assert!(job.quick <= job.target && job.chunk > 0 && job.chunk <= job.target, "{}", job.name);
            assert!(job.seconds > 0 && job.command.contains("{file}"), "{}", job.name);
        }
    }

    #[test]
    fn quick_go_is_expected_to_take_less_than_20_minutes() {
        let seconds: u64 = JOBS.iter().map(|job| job.expected_seconds(job.quick, None)).sum();
        assert!(seconds < 20 * 60, "{seconds} s");
    }

    /// Targets that count a list elsewhere.
    #[test]
    fn targets_are_all_defects_and_all_scripts() {
        let target = |name: &str| JOBS.iter().find(|job| job.name == name).unwrap().target;
        let read = |path: &str| files::read(&process::root().join(path)).unwrap();
        let page = read("docs/internals/defects.md");
        let (of_worlds, _) = page.split_once("## Holds").unwrap();
        let is_row = |line: &&str| line.starts_with("| `") && !line.contains("| – + ");
        assert_eq!(target("score"), of_worlds.lines().filter(is_row).count() as u64);
        let scripts = format!("| sweep | {} scripts,", target("sweep"));
        assert!(read("docs/internals/testing.md").contains(&scripts), "{scripts}");
    }

    /// The folders of the published packages that a package links, without those that only attempts use.
    fn linked(root: &str) -> BTreeSet<String> {
        let packages = outlast_packages::load().unwrap();
        let (mut found, mut next) = (BTreeSet::new(), vec![root.to_string()]);
        while let Some(name) = next.pop() {
            let Some(package) = packages.iter().find(|package| outlast_packages::folder(package) == name)
            else {
                continue;
            };
            for dependency in outlast_packages::shipped(package) {
                let folder = dependency.name.trim_start_matches("outlast-").to_string();
                let is_ours = packages.iter().any(|package| outlast_packages::folder(package) == folder);
                let is_attempt =
                    ["conformance", "cosmos-rig", "testing", "testkit"].contains(&folder.as_str());
                if is_ours && !is_attempt && found.insert(folder.clone()) {
                    next.push(folder);
                }
            }
        }
        found
    }

    #[test]
    fn rows_are_about_the_packages_that_their_programs_link() {
        for (program, rows) in [("chaos", ["chaos", "chaos-postgres", "chaos-cosmos"]), ("sim", ["sim"; 3])] {
            let about: BTreeSet<String> =
                rows.iter().flat_map(|row| packages(row)).map(str::to_string).collect();
            let missing: Vec<String> = linked(program).difference(&about).cloned().collect();
            assert_eq!(missing, [""; 0], "{program}");
        }
    }
}
