//! Hooks for tests (feature `test-hooks`): a process-wide delay of turns, and control over when the tasks of one runtime are polled.

mod pulse;

pub(crate) use pulse::Paced;
pub use pulse::Pulse;

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

struct Delay {
    millis: u64,
    /// The instances that are delayed, by prefix of their id; all instances if empty.
    prefixes: Vec<String>,
}

static DELAY: RwLock<Delay> = RwLock::new(Delay { millis: 0, prefixes: Vec::new() });

// Ignores poisoning: no code under this lock can panic.
fn read() -> RwLockReadGuard<'static, Delay> {
    DELAY.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, Delay> {
    DELAY.write().unwrap_or_else(PoisonError::into_inner)
}

/// Delays every turn before it runs, in whole milliseconds; zero ends the delay. Prefixes accumulate until
/// [`clear_orch_processing_delay`]: with any prefix, only instances whose id starts with one of them are delayed.
pub fn set_orch_processing_delay(delay: Duration, instance_prefix: Option<&str>) {
    let mut state = write();
    state.millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
    state.prefixes.extend(instance_prefix.map(str::to_string));
}

/// The delay of turns of this instance.
pub fn get_orch_processing_delay(instance: &str) -> Option<Duration> {
    let state = read();
    let chosen = state.prefixes.is_empty()
        || state.prefixes.iter().any(|prefix| instance.starts_with(prefix.as_str()));
    (state.millis > 0 && chosen).then(|| Duration::from_millis(state.millis))
}

/// Ends the delay and removes all prefixes.
pub fn clear_orch_processing_delay() {
    *write() = Delay { millis: 0, prefixes: Vec::new() };
}

#[cfg(test)]
mod tests {
    use super::*;

    // One test, because the delay is process-wide. Other tests of this binary run no turns.
    #[test]
    fn prefixes_accumulate_until_cleared() {
        let millis = |instance| get_orch_processing_delay(instance).map(|delay| delay.as_millis());
        assert_eq!(millis("a-1"), None);
        set_orch_processing_delay(Duration::from_micros(20_999), None);
        assert_eq!((millis("a-1"), millis("b-1")), (Some(20), Some(20)));
        set_orch_processing_delay(Duration::from_millis(30), Some("a-"));
        assert_eq!((millis("a-1"), millis("b-1")), (Some(30), None));
        set_orch_processing_delay(Duration::from_millis(40), Some("b-"));
        assert_eq!((millis("a-1"), millis("b-1"), millis("c-1")), (Some(40), Some(40), None));
        set_orch_processing_delay(Duration::from_micros(999), None);
        assert_eq!(millis("a-1"), None, "less than a millisecond is no delay");
        clear_orch_processing_delay();
        set_orch_processing_delay(Duration::from_millis(1), None);
        assert_eq!(millis("c-1"), Some(1));
        clear_orch_processing_delay();
        assert_eq!(millis("c-1"), None);
    }
}
