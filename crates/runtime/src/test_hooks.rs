//! Hooks for tests (feature `test-hooks`): process-wide switches that make turns take long, and a say in when the tasks of
//! one runtime are polled.

mod pulse;

pub(crate) use pulse::Paced;
pub use pulse::Pulse;

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

struct Delay {
    millis: u64,
    /// Empty: all instances.
    prefixes: Vec<String>,
}

static DELAY: RwLock<Delay> = RwLock::new(Delay { millis: 0, prefixes: Vec::new() });

// Nothing can panic while the lock is held, so a poisoned one is as good as any.
fn read() -> RwLockReadGuard<'static, Delay> {
    DELAY.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, Delay> {
    DELAY.write().unwrap_or_else(PoisonError::into_inner)
}

/// Makes every turn wait before it runs, in whole milliseconds; zero switches it off. Prefixes add up until
/// [`clear_orch_processing_delay`]: only instances whose id starts with one of them wait, all if there is none.
pub fn set_orch_processing_delay(delay: Duration, instance_prefix: Option<&str>) {
    let mut state = write();
    state.millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
    state.prefixes.extend(instance_prefix.map(str::to_string));
}

/// How long a turn of this instance waits before it runs.
pub fn get_orch_processing_delay(instance: &str) -> Option<Duration> {
    let state = read();
    let chosen = state.prefixes.is_empty()
        || state.prefixes.iter().any(|prefix| instance.starts_with(prefix.as_str()));
    (state.millis > 0 && chosen).then(|| Duration::from_millis(state.millis))
}

/// Lets turns run at once again and forgets all prefixes.
pub fn clear_orch_processing_delay() {
    *write() = Delay { millis: 0, prefixes: Vec::new() };
}

#[cfg(test)]
mod tests {
    use super::*;

    // One test, because the switch is one per process. Other tests of this binary run no turns.
    #[test]
    fn prefixes_add_up_until_cleared() {
        let millis = |instance| get_orch_processing_delay(instance).map(|delay| delay.as_millis());
        assert_eq!(millis("a-1"), None);
        set_orch_processing_delay(Duration::from_micros(20_999), None);
        assert_eq!((millis("a-1"), millis("b-1")), (Some(20), Some(20)));
        set_orch_processing_delay(Duration::from_millis(30), Some("a-"));
        assert_eq!((millis("a-1"), millis("b-1")), (Some(30), None));
        set_orch_processing_delay(Duration::from_millis(40), Some("b-"));
        assert_eq!((millis("a-1"), millis("b-1"), millis("c-1")), (Some(40), Some(40), None));
        set_orch_processing_delay(Duration::from_micros(999), None);
        assert_eq!(millis("a-1"), None, "less than a millisecond is none");
        clear_orch_processing_delay();
        set_orch_processing_delay(Duration::from_millis(1), None);
        assert_eq!(millis("c-1"), Some(1));
        clear_orch_processing_delay();
        assert_eq!(millis("c-1"), None);
    }
}
