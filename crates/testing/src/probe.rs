//! Counts the moments of a run, and chooses one of them for a fault.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The moments of one kind in one run. A moment with the index of the target gets its fault; without a target the probe only counts.
pub struct Probe<M, F> {
    target: Option<(usize, F)>,
    seen: Mutex<Vec<M>>,
}

impl<M: Clone, F: Copy> Probe<M, F> {
    /// A probe with its target.
    pub fn new(target: Option<(usize, F)>) -> Self {
        Self { target, seen: Mutex::new(Vec::new()) }
    }

    fn seen(&self) -> MutexGuard<'_, Vec<M>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a moment; returns its fault if it is the target.
    pub fn on_moment(&self, moment: M) -> Option<F> {
        let mut seen = self.seen();
        seen.push(moment);
        self.target.filter(|(at, _)| at + 1 == seen.len()).map(|(_, fault)| fault)
    }

    /// The moments so far.
    pub fn moments(&self) -> Vec<M> {
        self.seen().clone()
    }
}
