//! Panics, wherever they are caught: the runtime survives one in a task, which is no reason to have one.

use std::cell::RefCell;
use std::sync::Once;

thread_local! {
    /// What panicked on this thread since somebody began to collect.
    static COLLECTED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Runs something on this thread, and panics in the end if anything in it did.
pub(crate) fn refused<T>(run: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let taken = COLLECTED.with_borrow_mut(|collected| {
                collected.as_mut().map(|collected| collected.push(panic.to_string())).is_some()
            });
            if !taken {
                print(panic);
            }
        }));
    });
    COLLECTED.set(Some(Vec::new()));
    let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    let panics = COLLECTED.take().unwrap_or_default();
    match ran {
        Ok(ran) if panics.is_empty() => ran,
        _ => panic!("something panicked: {panics:#?}"),
    }
}
