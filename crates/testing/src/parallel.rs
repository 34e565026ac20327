//! Runs independent jobs on all cores.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Runs `job` for every value that `next` yields, on one thread per core. Each thread stops at its first `None`.
pub fn for_each<T>(next: impl Fn() -> Option<T> + Sync, job: impl Fn(T) + Sync) {
    let worker = || {
        while let Some(input) = next() {
            job(input);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(worker);
        }
    });
}

/// The results of `job` for all inputs, in the order of the inputs.
pub fn map<T: Sync, R: Send>(inputs: &[T], job: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    let next_input = || {
        let index = next.fetch_add(1, Relaxed);
        inputs.get(index).map(|input| (index, input))
    };
    for_each(next_input, |(index, input)| {
        let result = job(input);
        results.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_inputs() {
        let inputs: Vec<u64> = (0..100).collect();
        let expected: Vec<u64> = (0..100).map(|input| input * 2).collect();
        assert_eq!(map(&inputs, |input| input * 2), expected);
        assert_eq!(map(&[] as &[u64], |input| *input), [0; 0]);
    }
}
