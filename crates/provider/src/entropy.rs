//! The source of random lock tokens that a store is given.

use std::cell::RefCell;

/// A source of random bits.
pub trait Entropy: Send + Sync + 'static {
    /// 128 bits that cannot be predicted outside of a simulation.
    fn next_u128(&self) -> u128;
}

/// The operating system's random source. It is read for several values at a time.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsEntropy;

/// Values that were read and not returned yet. Each value is returned once and then erased.
type Drawn = Vec<u128>;

const AT_A_TIME: usize = 16;

impl Entropy for OsEntropy {
    fn next_u128(&self) -> u128 {
        thread_local! {
            static DRAWN: RefCell<Drawn> = const { RefCell::new(Vec::new()) };
        }
        DRAWN.with_borrow_mut(|drawn| match drawn.pop() {
            Some(value) => value,
            None => {
                let (first, rest) = draw();
                drawn.extend(rest);
                first
            }
        })
    }
}

#[allow(clippy::disallowed_methods, reason = "this file is where randomness is read")]
#[allow(clippy::expect_used, reason = "an operating system without random bits cannot run a lease protocol")]
fn draw() -> (u128, [u128; AT_A_TIME - 1]) {
    let mut bytes = [[0; 16]; AT_A_TIME];
    getrandom::fill(bytes.as_flattened_mut()).expect("the operating system has random bits");
    let [first, rest @ ..] = bytes.map(u128::from_le_bytes);
    (first, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn values_differ_within_and_between_threads() {
        let values = || (0..100).map(|_| OsEntropy.next_u128()).collect::<Vec<_>>();
        let elsewhere = std::thread::scope(|scope| scope.spawn(values).join().unwrap());
        let distinct: BTreeSet<u128> = values().into_iter().chain(elsewhere).collect();
        assert_eq!(distinct.len(), 200);
    }
}
