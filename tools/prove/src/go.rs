//! One go: the next chunks of each job, until every job has its target or the time is over.

use std::path::Path;
use std::time::Duration;

use outlast_toolkit::page::grouped;
use outlast_toolkit::{Stopwatch, files, process};

use crate::chunk::{self, Chunk};
use crate::figures::{Figures, Merge};
use crate::jobs::Job;
use crate::listing::duration;
use crate::record::{Change, Failure, Progress, Record};
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
    /// A chunk failed, for this reason. The chunks after it may have run.
    Failed(String),
}

impl Go<'_> {
    /// Runs the jobs one after the other, and returns a message for each job of which a chunk failed. A failed chunk stays in the
    /// record of its row; the chunks after it follow if it wrote its figures.
    pub(crate) fn run(&self, jobs: &[&Job<'_>]) -> Result<Vec<String>, String> {
        let clock = Stopwatch::start();
        let mut failures = Vec::new();
        for job in jobs.iter().filter(|job| job.goal(self.is_quick) > 0) {
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
        let mut failed = None;
        let mut is_first = true;
        loop {
            let stamp = (self.stamp)()?.of_row(job.name);
            let record = Record::read(self.board, job.name)?;
            let measured = record.as_ref().and_then(|record| record.progress);
            // Figures and failures of other code are dropped.
            let before = record.filter(|record| record.change(job.name, &stamp.code) == Change::No);
            let mut progress =
                before.as_ref().map(|record| record.progress(job, &stamp.code)).unwrap_or_default();
            let has_failures = before.as_ref().is_some_and(|record| !record.failures.is_empty());
            // A success settles the failures of such a job. Without this, a go would have no chunk left that can succeed.
            if is_first
                && has_failures
                && job.merge == Merge::Replace
                && job.next(progress, self.is_quick).is_none()
            {
                progress = Progress::default();
            }
            is_first = false;
            let Some(chunk) = job.next(progress, self.is_quick) else {
                return Ok(failed.map_or(End::Complete, End::Failed));
            };
            let elapsed = clock.elapsed();
            let expected = job.expected_seconds(chunk.size, measured);
            if !fits(elapsed, Duration::from_secs(expected), self.limit) {
                return Ok(failed.map_or(End::NoTime, End::Failed));
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
            let ran = self.chunk(job, &chunk, &stamp);
            let seconds = timer.elapsed().as_secs().max(1);
            let (figures, error) = match ran {
                Ran::Succeeded(figures) => (Some(figures), None),
                Ran::Failed(figures, message) => (figures, Some(message)),
                Ran::OfOtherCode(message) => return Ok(End::Failed(message)),
            };
            let has_figures = figures.is_some();
            let mut record = merged(job, &chunk, before, progress, stamp, figures, seconds);
            if error.is_some() {
                record.failures.push(Failure {
                    command: chunk.line(job.command, Path::new("FILE")),
                    date: record.stamp.date.clone(),
                    commit: record.stamp.commit.clone(),
                });
            } else if job.merge == Merge::Replace {
                record.failures.clear();
            }
            record.write(self.board, job.name)?;
            match error {
                // The chunk did not run as far as its figures: the next one would not either.
                Some(message) if !has_figures => return Ok(End::Failed(message)),
                Some(message) => {
                    println!("{message}");
                    failed = Some(message);
                }
                None => {}
            }
        }
    }

    /// Runs a chunk. The message of a failure names the command line.
    fn chunk(&self, job: &Job<'_>, chunk: &Chunk, stamp: &Stamp) -> Ran {
        let file = self.scratch.join(format!("{}.json", job.name));
        let words = chunk.words(job.command, &file);
        let line = chunk.line(job.command, &file);
        let failed = |reason: String| format!("{}: {reason}\n  to repeat: {line}", job.name);
        // A command that stops early must not leave the figures of the chunk before.
        let status = files::write(&file, "").and_then(|()| process::stream(chunk::command(&words), |_| {}));
        let figures = figures(&file, job, chunk);
        match (self.stamp)().map(|after| after.of_row(job.name).code == stamp.code) {
            Ok(true) => {}
            Ok(false) => {
                let reason = "shipped code changed during the chunk; its figures are not counted";
                return Ran::OfOtherCode(failed(reason.to_string()));
            }
            Err(error) => return Ran::OfOtherCode(failed(error)),
        }
        match (status, figures) {
            (Err(error), _) => Ran::Failed(None, failed(error)),
            (Ok(status), Ok(figures)) if status.success() => Ran::Succeeded(figures),
            (Ok(status), Ok(figures)) => {
                Ran::Failed(Some(figures), failed(format!("the chunk failed with {status}")))
            }
            (Ok(status), Err(error)) => Ran::Failed(
                None,
                failed(format!("the chunk ended with {status} and has no figures: {error}")),
            ),
        }
    }
}

/// The end of a chunk.
enum Ran {
    Succeeded(Figures),
    /// For this reason; with the figures that the command wrote nevertheless.
    Failed(Option<Figures>, String),
    /// Nothing is recorded.
    OfOtherCode(String),
}

/// The figures that a chunk wrote.
fn figures(file: &Path, job: &Job<'_>, chunk: &Chunk) -> Result<Figures, String> {
    let mut figures: Figures =
        serde_json::from_str(&files::read(file)?).map_err(|error| error.to_string())?;
    figures.remove(KEY);
    match done(job, chunk, &figures) {
        0 => Err(format!("the chunk did no {}", job.unit)),
        _ => Ok(figures),
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

/// The record with one more chunk, whose figures are missing if it failed before it wrote them.
fn merged(
    job: &Job<'_>,
    chunk: &Chunk,
    before: Option<Record>,
    progress: Progress,
    stamp: Stamp,
    figures: Option<Figures>,
    seconds: u64,
) -> Record {
    let (mut sum, failures, was_dirty) =
        before.map(|record| (record.figures, record.failures, record.stamp.dirty)).unwrap_or_default();
    let mut progress = progress;
    if let Some(figures) = figures {
        job.merge.enter(&mut sum, &figures);
        progress.done += done(job, chunk, &figures);
        progress.chunks += 1;
        progress.seconds += seconds;
    }
    let stamp = Stamp { dirty: stamp.dirty || was_dirty, ..stamp };
    Record { stamp, figures: sum, progress: Some(progress), failures }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::code;
    use std::cell::{Cell, RefCell};

    /// A folder with a program that counts its seeds. It fails at the seed of the file `bad` before it writes figures, and at the seed of
    /// the file `lost` after that.
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
                "echo $1 >> {runs}\ntest \"$1\" = \"$(cat {bad})\" && exit 1\necho '{{\"seeds\": '$2'}}' > $3\n\
                 test \"$1\" != \"$(cat {lost})\"\n",
                runs = path("runs"),
                bad = path("bad"),
                lost = path("lost"),
            );
            files::write(&folder.path().join("bad"), "none").unwrap();
            files::write(&folder.path().join("lost"), "none").unwrap();
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

        /// Lets the chunk that begins at this seed fail, before or after it writes its figures.
        fn fails(&self, file: &str, seed: &str) {
            files::write(&self.folder.path().join(file), seed).unwrap();
        }

        /// Runs a go. The result is the failures.
        fn go(&self, is_quick: bool, limit: Option<Duration>) -> Vec<String> {
            self.go_with(Merge::Add, is_quick, limit)
        }

        fn go_with(&self, merge: Merge, is_quick: bool, limit: Option<Duration>) -> Vec<String> {
            let job = Job {
                name: "sim",
                unit: "seeds",
                target: 25,
                quick: 3,
                chunk: 10,
                seconds: 60,
                counted: Some("seeds"),
                merge,
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
        let Record { stamp, figures, progress, failures } = bench.record();
        assert_eq!(failures, []);
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
    fn chunk_that_fails_without_figures_runs_again_and_stays_in_the_record() {
        let bench = Bench::new();
        bench.fails("bad", "10");
        let failures = bench.go(false, None);
        assert!(failures.len() == 1 && failures[0].contains("to repeat: sh "), "{failures:?}");
        assert!(failures[0].contains("/job.sh 10 10 "), "{failures:?}");
        assert_eq!((bench.runs(), bench.record().figures["seeds"].clone()), (vec![0, 10], 10.into()));
        bench.fails("bad", "none");
        assert_eq!(bench.go(false, None), [""; 0]);
        assert_eq!((bench.runs(), bench.record().figures["seeds"].clone()), (vec![10, 20], 25.into()));
        let record = bench.record();
        let [Failure { command, date, commit }] = record.failures.as_slice() else { panic!("{record:?}") };
        assert!(command.ends_with("/job.sh 10 10 FILE"), "{command}");
        assert_eq!((date.as_str(), commit.as_str()), ("2026-01-02", "abc"));
    }

    #[test]
    fn first_chunk_that_fails_makes_a_record() {
        let bench = Bench::new();
        bench.fails("bad", "0");
        assert_eq!(bench.go(false, None).len(), 1);
        assert_eq!((bench.record().figures.len(), bench.record().failures.len()), (0, 1));
        assert_eq!(bench.go(false, None).len(), 1);
        assert_eq!((bench.runs(), bench.record().failures.len()), (vec![0, 0], 2));
    }

    #[test]
    fn figures_of_a_failed_chunk_are_entered_and_the_next_chunks_follow() {
        let bench = Bench::new();
        bench.fails("lost", "10");
        assert_eq!(bench.go(false, None).len(), 1);
        assert_eq!((bench.runs(), bench.record().figures["seeds"].clone()), (vec![0, 10, 20], 25.into()));
        bench.fails("lost", "none");
        assert_eq!(bench.go(false, None), [""; 0]);
        assert_eq!(
            (bench.runs(), bench.record().failures.len()),
            (vec![], 1),
            "the failed chunk is not repeated"
        );
    }

    #[test]
    fn changed_code_starts_without_the_failures() {
        let bench = Bench::new();
        bench.fails("lost", "0");
        bench.go(true, None);
        assert_eq!(bench.record().failures.len(), 1);
        bench.fails("lost", "none");
        bench.stamp.borrow_mut().code = code("2");
        bench.go(true, None);
        assert_eq!((bench.runs(), bench.record().failures.len()), (vec![0, 0], 0));
    }

    #[test]
    fn success_settles_the_failures_of_a_job_whose_figures_include_those_before() {
        let bench = Bench::new();
        bench.fails("lost", "20");
        assert_eq!(bench.go_with(Merge::Replace, false, None).len(), 1);
        assert_eq!((bench.runs(), bench.record().failures.len()), (vec![0, 10, 20], 1));
        bench.fails("lost", "none");
        assert_eq!(bench.go_with(Merge::Replace, false, None), [""; 0]);
        assert_eq!((bench.runs(), bench.record().failures.len()), (vec![0, 10, 20], 0));
        assert_eq!(bench.go_with(Merge::Replace, false, None), [""; 0]);
        assert_eq!(bench.runs(), [0; 0], "the job is complete");
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
