//! Collects the panics of a thread, also those that the runtime catches.
//!
//! The runtime survives a panic of a task or an activity. Unless the test planned that panic, it is a defect.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Once;

thread_local! {
    /// Messages of the panics on this thread, while [`collect`] runs on it.
    static COLLECTED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
    /// Whether [`planned`] raises the current panic.
    static IS_PLANNED: Cell<bool> = const { Cell::new(false) };
}

/// Panics on purpose: [`collect`] does not record this panic, and nothing is printed.
pub fn planned(message: &str) -> ! {
    IS_PLANNED.set(true);
    let unwinding = catch_unwind(|| panic!("{message}"));
    IS_PLANNED.set(false);
    match unwinding {
        Ok(never) => never,
        Err(payload) => resume_unwind(payload),
    }
}

/// Runs a function and returns its result with the messages of all panics on this thread, caught ones included. The result
/// is `None` if the function itself panicked. Collected panics are not printed.
pub fn collect<T>(run: impl FnOnce() -> T) -> (Option<T>, Vec<String>) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if IS_PLANNED.get() {
                return;
            }
            let is_collected = COLLECTED.with_borrow_mut(|collected| {
                collected.as_mut().map(|collected| collected.push(panic.to_string())).is_some()
            });
            if !is_collected {
                print(panic);
            }
        }));
    });
    COLLECTED.set(Some(Vec::new()));
    let result = catch_unwind(AssertUnwindSafe(run)).ok();
    (result, COLLECTED.take().unwrap_or_default())
}

/// Runs a function and panics if any code on this thread panicked meanwhile, even if the panic was caught.
#[allow(clippy::panic, reason = "a fuzz target reports by a panic")]
pub fn forbid<T>(run: impl FnOnce() -> T) -> T {
    match collect(run) {
        (Some(result), panics) if panics.is_empty() => result,
        (_, panics) => panic!("code panicked that must not: {panics:#?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caught_and_uncaught_panics_are_collected_and_planned_ones_are_not() {
        let (result, panics) = collect(|| catch_unwind(|| panic!("caught inside")).is_err());
        assert_eq!(result, Some(true));
        assert!(panics.len() == 1 && panics[0].contains("caught inside"), "{panics:?}");
        let (result, panics) = collect(|| -> u8 { panic!("not caught") });
        assert_eq!((result, panics.len()), (None, 1));
        let (result, panics) = collect(|| catch_unwind(|| planned("expected")).is_err());
        assert_eq!((result, panics), (Some(true), Vec::new()));
    }

    #[test]
    fn forbid_fails_on_a_caught_panic() {
        assert_eq!(forbid(|| 7), 7);
        let forbidden = catch_unwind(|| forbid(|| catch_unwind(|| panic!("caught inside")).is_err()));
        assert!(forbidden.is_err());
    }
}
