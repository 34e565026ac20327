//! The way to the writer.

use crate::command::Command;
use crate::store::Store;
use crate::waiting::LeaseKind;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::Notify;

/// A writer without a thread.
pub(crate) struct Inline {
    store: Mutex<Store>,
    /// Tells waiting fetches that the time to look again may have come closer.
    pub(crate) changed: Notify,
}

impl Inline {
    pub(crate) fn new(store: Store) -> Self {
        Self { store: Mutex::new(store), changed: Notify::new() }
    }

    /// Panics are contained inside of the store, so the lock is never held by one; if it were, the store would go on.
    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands commands to the writer: through a channel to its thread, or by running it right here.
#[derive(Clone)]
pub(crate) enum Handle {
    Threaded(Sender<Command>),
    Inline(Weak<Inline>),
}

impl Handle {
    /// A command whose writer is gone is dropped, and its caller sees that.
    pub(crate) fn submit(&self, command: Command) {
        match self {
            Self::Threaded(sender) => drop(sender.send(command)),
            Self::Inline(inline) => {
                if let Some(inline) = inline.upgrade() {
                    inline.store().process(vec![command], false, self);
                    inline.changed.notify_waiters();
                }
            }
        }
    }

    pub(crate) fn release(&self, kind: LeaseKind, token: String) {
        self.submit(Command::Release(kind, token));
    }
}
