//! Checks of a SQLite file: its settings, leases that have ended, rows without an instance, and the space on its disk.

use super::report::Check;
use crate::failure::Failure;
use outlast::lens::counted;
use outlast::providers::sqlite::SqliteProvider;
use std::path::Path;

const MB: u64 = 1_000_000;

pub(super) async fn check(
    file: &SqliteProvider,
    fix: bool,
    min_free_mb: u64,
    overdue_ms: u64,
) -> Result<Vec<Check>, Failure> {
    let seen = file.examine(overdue_ms).await?;
    let mut settings = Check::fine("settings", "journal_mode is wal, auto_vacuum is incremental");
    if seen.journal_mode != "wal" {
        settings.found(format!(
            "journal_mode is {}, not wal: readers and writers block each other until a process of Outlast opens the file again",
            seen.journal_mode
        ));
    }
    if seen.auto_vacuum != 2 {
        settings.found("auto_vacuum is not incremental: the file does not shrink when instances are deleted");
    }
    let mut leases = Check::fine("leases", "none has ended without a commit");
    for (count, noun) in [(seen.ended_turn_leases, "turn"), (seen.ended_activity_leases, "activity")] {
        if count > 0 {
            let ended = match count {
                1 => format!("the lease of 1 {noun} delivery has ended"),
                count => format!("the leases of {count} {noun} deliveries have ended"),
            };
            leases.found(format!(
                "{ended} without a commit, and no process has taken over: does a process run?"
            ));
        }
    }
    let mut turns = Check::fine("turns", "none is overdue");
    if seen.overdue_turns > 0 {
        turns.found(format!(
            "messages of {} have been due for {} or longer, and no process takes them: does a process run?",
            counted(seen.overdue_turns, "instance"),
            outlast::lens::span(overdue_ms)
        ));
    }
    let mut orphans = Check::fine("orphans", "every row has its instance");
    if fix {
        let removed = file.remove_orphans().await?;
        if removed > 0 {
            orphans = Check::fine("orphans", format!("removed {}", counted(removed, "row")));
            orphans.fixed = removed;
        }
    } else {
        for (table, count) in seen.orphans.into_iter().filter(|(_, count)| *count > 0) {
            let rows = counted(count, "row");
            orphans.found(format!("{rows} of table {table} without an instance: --fix removes them"));
        }
    }
    let schema = Check::fine("schema", "is the one of this command");
    Ok(vec![schema, settings, leases, turns, orphans, disk(seen.path.as_deref(), seen.bytes, min_free_mb)?])
}

fn disk(path: Option<&Path>, bytes: u64, min_free_mb: u64) -> Result<Check, Failure> {
    let size = format!("the file has {:.1} MB", bytes as f64 / MB as f64);
    let Some(free) = path.map(free_bytes).transpose()?.flatten() else {
        return Ok(Check::fine("disk", size));
    };
    let mut check = Check::fine("disk", format!("{size}, and its disk {} MB free", free / MB));
    if free / MB < min_free_mb {
        check.found(format!("{size}, and its disk only {} MB free", free / MB));
    }
    Ok(check)
}

#[cfg(unix)]
fn free_bytes(path: &Path) -> Result<Option<u64>, Failure> {
    let disk = rustix::fs::statvfs(path).map_err(|error| {
        Failure::new(format!("the disk of '{}' cannot be examined: {error}", path.display()))
    })?;
    Ok(Some(disk.f_bavail.saturating_mul(disk.f_frsize)))
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Result<Option<u64>, Failure> {
    Ok(None)
}
