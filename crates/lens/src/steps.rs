//! Counts the steps of the folds, so that a test can show that their number grows with the history and not with its square.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts one pass of an inner loop. Without tests the function is empty.
#[inline]
pub(crate) fn step() {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get() + 1));
}

/// The steps of a call.
#[cfg(test)]
pub(crate) fn count(call: impl FnOnce()) -> u64 {
    STEPS.with(|steps| steps.set(0));
    call();
    STEPS.with(std::cell::Cell::get)
}
