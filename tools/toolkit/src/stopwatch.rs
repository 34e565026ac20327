//! Elapsed real time, and used processor time.

use std::time::{Duration, Instant};

/// Measures real time, for reports and for limits of waiting.
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts to measure.
    #[allow(clippy::disallowed_methods, reason = "build tools measure real time")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// The processor time of this process and of its children that have ended, on Linux. `None` elsewhere.
pub fn processor_time() -> Option<Duration> {
    of_stat(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// The sum of `utime`, `stime`, `cutime` and `cstime`, which follow the name of the program in parentheses.
fn of_stat(stat: &str) -> Option<Duration> {
    /// The unit of these fields is 10 ms on every architecture of Linux (`USER_HZ`).
    const TICK: Duration = Duration::from_millis(10);
    let (_, after_name) = stat.rsplit_once(')')?;
    let ticks: Vec<u32> = after_name.split_whitespace().skip(11).take(4).flat_map(str::parse).collect();
    (ticks.len() == 4).then(|| TICK * ticks.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_the_sum_of_own_and_children_ticks() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 200 0 0 150 25 1000 325 20 0 1 0";
        assert_eq!(of_stat(stat), Some(Duration::from_secs(15)));
        assert_eq!(of_stat("7 (a) S 1"), None);
    }
}
