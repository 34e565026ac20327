//! The processor time, memory and writes of this process and others, as the kernel reports them.

use std::time::Duration;

/// Processor time used so far by all threads.
pub(crate) fn used() -> Duration {
    used_by(|_| true)
}

/// Processor time used so far by the threads whose name `wanted` accepts.
pub(crate) fn used_by(wanted: impl Fn(&str) -> bool) -> Duration {
    let mut nanos = 0_u64;
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let read = |file: &str| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        if wanted(read("comm").trim()) {
            nanos +=
                read("schedstat").split_whitespace().next().and_then(|text| text.parse().ok()).unwrap_or(0);
        }
    }
    Duration::from_nanos(nanos)
}

/// Processor time used so far by a process and its children.
pub(crate) fn used_by_family(parent: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{parent}/stat")).unwrap_or_default();
    Ticks::read(&stat).map_or(Duration::ZERO, |ticks| ticks.own * TICK) + used_by_children(parent)
}

/// Processor time used so far by the children of a process, those that have ended included.
pub(crate) fn used_by_children(parent: u32) -> Duration {
    let mut used = Duration::ZERO;
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        let Some(ticks) = Ticks::read(&stat) else { continue };
        if process.file_name().to_str() == Some(&parent.to_string()) {
            used += ticks.of_ended_children * TICK;
        } else if ticks.parent == parent {
            used += ticks.own * TICK;
        }
    }
    used
}

/// The kernel reports the times of other processes in hundredths of a second.
const TICK: Duration = Duration::from_millis(10);

struct Ticks {
    parent: u32,
    own: u32,
    of_ended_children: u32,
}

impl Ticks {
    /// Reads `/proc/PID/stat`. The name in parentheses may hold any character, so the text is split at the last parenthesis.
    fn read(stat: &str) -> Option<Self> {
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u32>().ok();
        Some(Self {
            parent: number(1)?,
            own: number(11)? + number(12)?,
            of_ended_children: number(13)? + number(14)?,
        })
    }
}

/// Bytes written to files so far.
pub(crate) fn bytes_written() -> u64 {
    field("/proc/self/io", "wchar:")
}

/// Bytes of memory that this process occupies now.
pub(crate) fn memory() -> u64 {
    field("/proc/self/status", "VmRSS:") * 1024
}

fn field(file: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let value =
        text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok());
    value.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_behind_any_name() {
        let stat = "7 (a) b 1) S 3 7 7 0 -1 4194560 100 200 0 0 11 22 33 44 20 0 1 0 500";
        let ticks = Ticks::read(stat).unwrap();
        assert_eq!((ticks.parent, ticks.own, ticks.of_ended_children), (3, 33, 77));
        assert!(Ticks::read("").is_none());
    }
}
