//! The places for streams and waits: those of the server, and of each caller.

use crate::problem::{Code, Problem};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The places of a server.
pub(crate) struct Streams {
    most: usize,
    most_per_caller: usize,
    taken: Arc<Taken>,
}

/// The number of streams and waits of each caller that has any.
#[derive(Default)]
struct Taken(Mutex<HashMap<String, usize>>);

/// The right to a stream or a wait, until it is dropped.
pub(crate) struct StreamPermit {
    caller: String,
    taken: Arc<Taken>,
}

impl Taken {
    fn by_caller(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        // A panic between two statements of this file leaves whole counts.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Streams {
    pub(crate) fn new(most: usize, most_per_caller: usize) -> Self {
        Self { most, most_per_caller, taken: Arc::default() }
    }

    /// A place for this caller.
    pub(crate) fn take(&self, caller: &str) -> Result<StreamPermit, Problem> {
        let mut taken = self.taken.by_caller();
        let own = taken.get(caller).copied().unwrap_or(0);
        if own >= self.most_per_caller {
            return Err(Problem::later(
                Code::RATE,
                format!(
                    "this caller has {own} streams and waits, as many as it may: end one, or try again later"
                ),
                1,
            ));
        }
        if taken.values().sum::<usize>() >= self.most {
            return Err(Problem::later(
                Code::BUSY,
                "the server has as many streams and waits as it may: try again later",
                1,
            ));
        }
        taken.insert(caller.to_string(), own + 1);
        Ok(StreamPermit { caller: caller.to_string(), taken: Arc::clone(&self.taken) })
    }

    /// The number of streams and waits.
    pub(crate) fn in_use(&self) -> u64 {
        self.taken.by_caller().values().sum::<usize>() as u64
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut taken = self.taken.by_caller();
        if let Some(own) = taken.get_mut(&self.caller) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caller_at_its_limit_leaves_places_for_others() {
        let streams = Streams::new(3, 2);
        let code = |caller: &str| streams.take(caller).err().map(|problem| problem.code.name);
        let (one, two) = (streams.take("a").ok(), streams.take("a").ok());
        assert_eq!((code("a"), streams.in_use()), (Some("rate_limited"), 2));
        let other = streams.take("b").ok();
        assert_eq!((code("b"), code("a")), (Some("busy"), Some("rate_limited")));
        drop(one);
        assert_eq!((code("a"), code("b"), streams.in_use()), (None, None, 2));
        drop((two, other));
        assert_eq!(streams.in_use(), 0);
        assert!(streams.taken.by_caller().is_empty(), "callers without a stream are forgotten");
    }
}
