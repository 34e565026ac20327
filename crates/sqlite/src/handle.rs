//! The way to the writer.

use crate::command::Command;
use crate::store::Store;
use crate::waiting::LeaseKind;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError, Weak};

/// Hands commands to the writer: through a channel to its thread, or by running it right here.
#[derive(Clone)]
pub(crate) enum Handle {
    Threaded(Sender<Command>),
    Inline(Weak<Mutex<Store>>),
}

impl Handle {
    /// A command whose writer is gone is dropped, and its caller sees that.
    pub(crate) fn submit(&self, command: Command) {
        match self {
            Self::Threaded(sender) => drop(sender.send(command)),
            Self::Inline(store) => {
                if let Some(store) = store.upgrade() {
                    let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
                    store.process(vec![command], false, self);
                }
            }
        }
    }

    pub(crate) fn release(&self, kind: LeaseKind, token: String) {
        self.submit(Command::Release(kind, token));
    }
}
