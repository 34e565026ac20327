//! The permits of a queue: the right to run the code of one turn or activity. The concurrency option is the number of permits.

use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Semaphore, SemaphorePermit};

pub(crate) struct Permits {
    semaphore: Semaphore,
    /// Whether the permit with this number is taken.
    taken: Mutex<Vec<bool>>,
}

impl Permits {
    pub(crate) fn new(count: usize) -> Self {
        let count = count.min(Semaphore::MAX_PERMITS);
        Self { semaphore: Semaphore::new(count), taken: Mutex::new(vec![false; count]) }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<bool>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of taken permits.
    pub(crate) fn taken(&self) -> usize {
        self.lock().iter().filter(|taken| **taken).count()
    }

    /// Takes a permit if one is free and no task waits for one; the one with number `preferred` if it is free.
    pub(super) fn try_take(&self, preferred: usize) -> Option<Permit<'_>> {
        Some(self.numbered(self.semaphore.try_acquire().ok()?, preferred))
    }

    /// Takes a permit, in the order of the calls. `None` never happens: the semaphore is not closed.
    pub(super) async fn take(&self, preferred: usize) -> Option<Permit<'_>> {
        Some(self.numbered(self.semaphore.acquire().await.ok()?, preferred))
    }

    /// Waits until a permit is free. Another task may take it at once.
    pub(super) async fn wait_until_free(&self) {
        drop(self.semaphore.acquire().await);
    }

    /// Gives a permit the preferred number if the number is free, else the lowest free number.
    fn numbered<'a>(&'a self, permit: SemaphorePermit<'a>, preferred: usize) -> Permit<'a> {
        let mut taken = self.lock();
        let number = match taken.get(preferred) {
            Some(false) => preferred,
            _ => taken.iter().position(|taken| !taken).unwrap_or_default(),
        };
        if let Some(taken) = taken.get_mut(number) {
            *taken = true;
        }
        drop(taken);
        Permit { permits: self, number, _permit: permit }
    }
}

/// The right to run the code of one turn or activity.
pub(super) struct Permit<'a> {
    permits: &'a Permits,
    number: usize,
    _permit: SemaphorePermit<'a>,
}

impl Permit<'_> {
    pub(super) fn number(&self) -> usize {
        self.number
    }
}

impl Drop for Permit<'_> {
    // The number is free before the semaphore's permit, which is dropped after this.
    fn drop(&mut self) {
        if let Some(taken) = self.permits.lock().get_mut(self.number) {
            *taken = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn permits_that_are_held_at_the_same_time_have_different_numbers() {
        let permits = Permits::new(2);
        let second = permits.try_take(1).expect("two permits are free");
        assert_eq!(second.number(), 1, "the preferred number is free");
        let first = permits.take(1).await.expect("one permit is free");
        assert_eq!(first.number(), 0);
        assert!(permits.try_take(0).is_none());
        drop(second);
        permits.wait_until_free().await;
        assert_eq!(permits.try_take(7).map(|permit| permit.number()), Some(1), "number 7 does not exist");
        drop(first);
    }
}
