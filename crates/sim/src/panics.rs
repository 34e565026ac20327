//! Panics, wherever they are caught: none of our code has a reason for one, but for those that a program plans.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Once;

thread_local! {
    /// What panicked on this thread since somebody began to collect.
    static COLLECTED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
    /// Whether the panic that begins is part of the story.
    static PLANNED: Cell<bool> = const { Cell::new(false) };
}

/// Panics, as somebody planned. The runtime must contain it.
pub(crate) fn planned(text: &str) -> ! {
    PLANNED.set(true);
    let unwinding = catch_unwind(|| panic!("{text}"));
    PLANNED.set(false);
    match unwinding {
        Ok(never) => never,
        Err(payload) => resume_unwind(payload),
    }
}

/// Runs something. Panics on this thread are returned instead of printed, those that somebody catches too.
pub(crate) fn collect<T>(run: impl FnOnce() -> T) -> (Option<T>, Vec<String>) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if PLANNED.get() {
                return;
            }
            let taken = COLLECTED.with_borrow_mut(|collected| {
                collected.as_mut().map(|collected| collected.push(panic.to_string())).is_some()
            });
            if !taken {
                print(panic);
            }
        }));
    });
    COLLECTED.set(Some(Vec::new()));
    let ran = catch_unwind(AssertUnwindSafe(run)).ok();
    (ran, COLLECTED.take().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_are_collected_where_they_happen() {
        let (ran, panics) = collect(|| catch_unwind(|| panic!("caught inside")).is_err());
        assert_eq!(ran, Some(true));
        assert!(panics.len() == 1 && panics[0].contains("caught inside"), "{panics:?}");
        let (ran, panics) = collect(|| -> u8 { panic!("not caught") });
        assert_eq!((ran, panics.len()), (None, 1));
        let (ran, panics) = collect(|| catch_unwind(|| planned("as foreseen")).is_err());
        assert_eq!((ran, panics), (Some(true), Vec::new()));
    }
}
