//! The list of the jobs: their targets, the part that is done, and whether shipped code changed since.

use std::fmt::Write as _;
use std::path::Path;

use outlast_packages::code::{self, Hashes};
use outlast_toolkit::page::grouped;

use crate::jobs::Job;
use crate::record::{Change, Record};

pub(crate) fn table(
    jobs: &[&Job<'_>],
    is_quick: bool,
    board: &Path,
    code: &Hashes,
) -> Result<String, String> {
    let mut out = format!("shipped code {}\n", code::total(code));
    let _ = writeln!(out, "{:<16} {:>9} {:>9} {:<20} {:>12}  state", "job", "done", "target", "unit", "rest");
    let mut seconds = 0;
    for job in jobs {
        let record = Record::read(board, job.name)?;
        let done = record.as_ref().map_or(0, |record| record.progress(job, code).done);
        let goal = job.goal(is_quick);
        let rest = goal.saturating_sub(done);
        let measured = record.as_ref().and_then(|record| record.progress);
        let failures = record.as_ref().map_or(0, |record| record.failures.len());
        let state = match record.filter(|_| goal > 0).map(|record| record.change(job.name, code)) {
            None if goal == 0 => "not in --quick".to_string(),
            None => "no record".to_string(),
            Some(Change::No) if failures > 0 => format!("FAILED chunks on this code: {failures}"),
            Some(Change::No) if rest == 0 => "complete".to_string(),
            Some(Change::No) => "unfinished".to_string(),
            Some(change) => format!("shipped code changed since: {change}"),
        };
        let expected = job.expected_seconds(rest, measured);
        seconds += expected;
        let time = duration(expected);
        let (done, goal) = (grouped(done), grouped(goal));
        let _ = writeln!(out, "{:<16} {done:>9} {goal:>9} {:<20} {time:>12}  {state}", job.name, job.unit);
    }
    let _ = writeln!(out, "{:<16} {:>9} {:>9} {:<20} {:>12}", "all jobs", "", "", "", duration(seconds));
    Ok(out)
}

/// A duration in hours and minutes, or in seconds.
pub(crate) fn duration(seconds: u64) -> String {
    let minutes = seconds.div_ceil(60);
    match (minutes / 60, minutes) {
        (0, 0..=2) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {:02} min", minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::JOBS;
    use crate::record::tests::{code, record};

    #[test]
    fn the_list_shows_done_targets_and_stale_rows() {
        let folder = tempfile::tempdir().unwrap();
        record("sim", "1", 20_000).write(folder.path(), "sim").unwrap();
        let jobs: Vec<&Job<'_>> = JOBS.iter().take(2).collect();
        let lines = |is_quick: bool, hash: &str| -> Vec<String> {
            let table = table(&jobs, is_quick, folder.path(), &code(hash)).unwrap();
            table.lines().skip(2).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
        };
        assert_eq!(lines(false, "1")[0], "sim 20,000 300,000 seeds 70 s unfinished");
        assert_eq!(lines(true, "1")[0], "sim 20,000 2,000 seeds 0 s complete");
        assert!(lines(false, "2")[0].starts_with("sim 0 300,000 seeds"), "a change starts the row again");
        assert!(lines(false, "2")[0].contains("shipped code changed since: yes (engine,"));
        assert_eq!(lines(false, "1")[1], "score 0 102 defects 17 min no record");
        assert_eq!(lines(false, "1")[2], "all jobs 19 min");
    }

    #[test]
    fn the_list_shows_failed_chunks() {
        let folder = tempfile::tempdir().unwrap();
        let mut record = record("sim", "1", 20_000);
        record.failures.push(crate::record::tests::failure());
        record.write(folder.path(), "sim").unwrap();
        let shown = table(&[&JOBS[0]], true, folder.path(), &code("1")).unwrap();
        assert!(
            shown.lines().nth(2).is_some_and(|line| line.ends_with("FAILED chunks on this code: 1")),
            "{shown}"
        );
    }

    #[test]
    fn durations_have_one_or_two_units() {
        assert_eq!([0, 90, 600, 7_260].map(duration), ["0 s", "90 s", "10 min", "2 h 01 min"]);
    }
}
