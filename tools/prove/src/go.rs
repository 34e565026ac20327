//! One go: the next chunks of each job, until every job has its target or the time is over.

use std::path::Path;
use std::time::Duration;

use outlast_toolkit::page::grouped;
use outlast_toolkit::{Stopwatch, files, process};

use crate::chunk::{self, Chunk};
use crate::figures::Figures;
use crate::jobs::Job;
use crate::listing::duration;
use crate::record::{Progress, Record};
use crate::stamp::{KEY, Stamp};

pub(crate) struct Go<'a> {
    /// The folder of the records.
    pub(crate) board: &'a Path,
    /// The folder of the figures of single chunks.
    pub(crate) scratch: &'a Path,
    /// The commit and the code of a run that starts now.
    pub(crate) stamp: &'a dyn Fn() -> Result<Stamp, String>,
    pub(crate) is_quick: bool,
    pub(crate) limit: Option<Duration>,
}

/// The end of a job in a go.
enum End {
    Complete,
    /// The next chunk would end after the limit.
    NoTime,
    /// A chunk failed, for this reason.
    Failed(String),
}

impl Go<'_> {
    /// Runs the jobs one after the other, and returns a message for each job whose chunk failed. The next job follows a failure.
    pub(crate) fn run(&self, jobs: &[&Job<'_>]) -> Result<Vec<String>, String> {
        let clock = Stopwatch::start();
        let mut failures = Vec::new();
        for job in jobs {
            match self.job(job, &clock)? {
                End::Complete => println!("{}: complete", job.name),
                End::NoTime => println!("{}: no time for the next chunk", job.name),
                End::Failed(message) => {
                    println!("{message}");
                    failures.push(message);
                }
            }
        }
        Ok(failures)
    }

    /// Runs the chunks of a job until the job is complete, the time is over, or a chunk fails.
    fn job(&self, job: &Job<'_>, clock: &Stopwatch) -> Result<End, String> {
        loop {
            let stamp = (self.stamp)()?.of_row(job.name);
            let record = Record::read(self.board, job.name)?;
            let progress =
                record.as_ref().map(|record| record.progress(job, &stamp.code)).unwrap_or_default();
            let measured = record.as_ref().and_then(|record| record.progress);
            let Some(chunk) = job.next(progress, self.is_quick) else { return Ok(End::Complete) };
            let elapsed = clock.elapsed();
            let expected = job.expected_seconds(chunk.size, measured);
            if !fits(elapsed, Duration::from_secs(expected), self.limit) {
                return Ok(End::NoTime);
            }
            let goal = job.goal(self.is_quick);
            println!(
                "\n{}: {} of {} {}; {} since the start, about {} for this chunk, about {} until the job is complete",
                job.name,
                grouped(progress.done),
                grouped(goal),
                job.unit,
                duration(elapsed.as_secs()),
                duration(expected),
                duration(job.expected_seconds(goal - progress.done, measured)),
            );
            let timer = Stopwatch::start();
            let figures = match self.figures(job, &chunk, &stamp) {
                Ok(figures) => figures,
                Err(message) => return Ok(End::Failed(message)),
            };
            // Figures of other code are dropped.
            let before = record.filter(|_| progress != Progress::default());
            let seconds = timer.elapsed().as_secs().max(1);
            merged(job, &chunk, before, progress, stamp, &figures, seconds).write(self.board, job.name)?;
        }
    }

    /// Runs a chunk and returns its figures. The error names the command line.
    fn figures(&self, job: &Job<'_>, chunk: &Chunk, stamp: &Stamp) -> Result<Figures, String> {
        let file = self.scratch.join(format!("{}.json", job.name));
        let words = chunk.words(job.command, &file);
        let failed = |reason: String| format!("{}: {reason}\n  to repeat: {}", job.name, words.join(" "));
        // A command that stops early must not leave the figures of the chunk before.
        files::write(&file, "").map_err(failed)?;
        let status = process::stream(chunk::command(&words), |_| {}).map_err(failed)?;
        if !status.success() {
            return Err(failed(format!("the chunk failed with {status}; its figures are not counted")));
        }
        let text = files::read(&file).map_err(failed)?;
        let mut figures: Figures = serde_json::from_str(&text)
            .map_err(|error| failed(format!("the figures cannot be read: {error}")))?;
        figures.remove(KEY);
        let after = (self.stamp)().map_err(failed)?.of_row(job.name);
        if after.code != stamp.code {
            return Err(failed(
                "shipped code changed during the chunk; its figures are not counted".to_string(),
            ));
        }
        if done(job, chunk, &figures) == 0 {
            return Err(failed(format!("the chunk did no {}", job.unit)));
        }
        Ok(figures)
    }
}

/// Whether a chunk that starts now is expected to end before the limit.
fn fits(elapsed: Duration, expected: Duration, limit: Option<Duration>) -> bool {
    limit.is_none_or(|limit| elapsed + expected <= limit)
}

/// The units that a chunk has done.
fn done(job: &Job<'_>, chunk: &Chunk, figures: &Figures) -> u64 {
    let counted = |key: &str| figures.get(key).and_then(serde_json::Value::as_u64).unwrap_or_default();
    job.counted.map_or(chunk.size, |key| counted(key).min(chunk.size))
}

/// The record with the figures of one more chunk.
fn merged(
    job: &Job<'_>,
    chunk: &Chunk,
    before: Option<Record>,
    progress: Progress,
    stamp: Stamp,
    figures: &Figures,
    seconds: u64,
) -> Record {
    let (mut sum, was_dirty) = before.map(|record| (record.figures, record.stamp.dirty)).unwrap_or_default();
    job.merge.enter(&mut sum, figures);
    let progress = Progress {
        done: progress.done + done(job, chunk, figures),
        chunks: progress.chunks + 1,
        seconds: progress.seconds + seconds,
    };
    let stamp = Stamp { dirty: stamp.dirty || was_dirty, ..stamp };
    Record { stamp, figures: sum, progress: Some(progress) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Merge;
    use crate::record::tests::code;
    use std::cell::{Cell, RefCell};

    /// A folder with a program that counts its seeds, and fails at the seed of the file `bad`.
    struct Bench {
        folder: tempfile::TempDir,
        command: String,
        stamp: RefCell<Stamp>,
    }

    impl Bench {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = |name: &str| folder.path().join(name).display().to_string();
            let script = format!(
                "echo $1 >> {runs}\ntest \"$1\" = \"$(cat {bad})\" && exit 1\necho '{{\"seeds\": '$2'}}' > $3\n",
                runs = path("runs"),
                bad = path("bad"),
            );
            files::write(&folder.path().join("bad"), "none").unwrap();
            files::write(&folder.path().join("job.sh"), &script).unwrap();
            let command = format!("sh {} {{from}} {{size}} {{file}}", path("job.sh"));
            let stamp = Stamp {
                commit: "abc".to_string(),
                date: "2026-01-02".to_string(),
                dirty: false,
                code: code("1"),
            };
            Self { folder, command, stamp: RefCell::new(stamp) }
        }

        /// Runs a go. The result is the failures.
        fn go(&self, is_quick: bool, limit: Option<Duration>) -> Vec<String> {
            let job = Job {
                name: "sim",
                unit: "seeds",
                target: 25,
                quick: 3,
                chunk: 10,
                seconds: 60,
                counted: Some("seeds"),
                merge: Merge::Add,
                command: &self.command,
            };
            let stamp = || Ok(self.stamp.borrow().clone());
            let path = self.folder.path();
            Go { board: path, scratch: &path.join("scratch"), stamp: &stamp, is_quick, limit }
                .run(&[&job])
                .unwrap()
        }

        fn record(&self) -> Record {
            Record::read(self.folder.path(), "sim").unwrap().unwrap()
        }

        /// The first seeds of the chunks that ran since the last call.
        fn runs(&self) -> Vec<u64> {
            let path = self.folder.path().join("runs");
            let text = files::read(&path).unwrap_or_default();
            files::write(&path, "").unwrap();
            text.lines().map(|line| line.parse().unwrap()).collect()
        }
    }

    #[test]
    fn goes_add_up_and_a_complete_job_is_not_repeated() {
        let bench = Bench::new();
        assert_eq!(bench.go(true, None), [""; 0]);
        assert_eq!((bench.runs(), bench.record().progress.unwrap().done), (vec![0], 3));
        assert_eq!(bench.go(false, None), [""; 0]);
        assert_eq!(bench.runs(), [3, 13, 23]);
        let Record { stamp, figures, progress } = bench.record();
        assert_eq!(
            (&figures["seeds"], progress.unwrap().done, progress.unwrap().chunks),
            (&25.into(), 25, 4)
        );
        assert_eq!((stamp.commit.as_str(), stamp.code["engine"].as_str()), ("abc", "1"));
        assert_eq!(bench.go(false, None), [""; 0]);
        assert_eq!(bench.runs(), [0; 0]);
    }

    #[test]
    fn changed_code_starts_the_row_again_and_a_new_commit_alone_does_not() {
        let bench = Bench::new();
        bench.go(true, None);
        bench.stamp.borrow_mut().commit = "def".to_string();
        bench.stamp.borrow_mut().dirty = true;
        bench.go(true, None);
        assert_eq!((bench.runs(), bench.record().stamp.commit.as_str()), (vec![0], "abc"));
        bench.stamp.borrow_mut().code = code("2");
        bench.go(true, None);
        let record = bench.record();
        assert_eq!((bench.runs(), &record.figures["seeds"]), (vec![0], &3.into()));
        assert_eq!((record.stamp.commit.as_str(), record.stamp.dirty), ("def", true));
        bench.stamp.borrow_mut().dirty = false;
        bench.go(false, None);
        assert!(bench.record().stamp.dirty, "a part of the figures is of a dirty tree");
    }

    #[test]
    fn a_failed_chunk_is_not_counted_and_runs_again_in_the_next_go() {
        let bench = Bench::new();
        files::write(&bench.folder.path().join("bad"), "10").unwrap();
        let failures = bench.go(false, None);
        assert!(failures.len() == 1 && failures[0].contains("to repeat: sh "), "{failures:?}");
        assert!(failures[0].contains("/job.sh 10 10 "), "{failures:?}");
        assert_eq!((bench.runs(), bench.record().figures["seeds"].clone()), (vec![0, 10], 10.into()));
        files::write(&bench.folder.path().join("bad"), "none").unwrap();
        assert_eq!(bench.go(false, None), [""; 0]);
        assert_eq!((bench.runs(), bench.record().figures["seeds"].clone()), (vec![10, 20], 25.into()));
    }

    #[test]
    fn no_chunk_starts_that_would_end_after_the_limit() {
        let bench = Bench::new();
        assert_eq!(bench.go(false, Some(Duration::from_secs(30))), [""; 0]);
        assert_eq!(bench.runs(), [0; 0]);
        bench.go(false, Some(Duration::from_secs(3_600)));
        assert_eq!(bench.runs(), [0, 10, 20]);
        let minute = Duration::from_secs(60);
        assert!(fits(minute, minute, None) && fits(minute, minute, Some(2 * minute)));
        assert!(!fits(minute, minute, Some(minute)));
    }

    #[test]
    fn figures_of_code_that_changed_during_the_chunk_are_not_counted() {
        let bench = Bench::new();
        let calls = Cell::new(0);
        let stamp = || {
            calls.set(calls.get() + 1);
            Ok(Stamp { code: code(&calls.get().to_string()), ..Stamp::default() })
        };
        let path = bench.folder.path();
        let job = Job { command: &bench.command, target: 25, quick: 3, chunk: 10, ..crate::jobs::JOBS[0] };
        let go =
            Go { board: path, scratch: &path.join("scratch"), stamp: &stamp, is_quick: true, limit: None };
        assert!(go.run(&[&job]).unwrap()[0].contains("shipped code changed during the chunk"));
        assert_eq!(Record::read(path, "sim"), Ok(None));
    }
}
