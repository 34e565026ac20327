//! The handle through which commands reach the writer.

use crate::command::Command;
use crate::leased::LeaseKind;
use crate::writer::Writer;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::Notify;

/// A writer without a thread.
pub(crate) struct Inline {
    writer: Mutex<Writer>,
    /// Wakes the tasks of parked fetches, because the next poll may be due earlier.
    pub(crate) changed: Notify,
}

impl Inline {
    pub(crate) fn new(writer: Writer) -> Self {
        Self { writer: Mutex::new(writer), changed: Notify::new() }
    }

    /// The writer contains its panics, so none poisons the lock. A poisoned lock would still be usable.
    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends commands to the writer's thread, or runs the writer on the calling task.
#[derive(Clone)]
pub(crate) enum Handle {
    Threaded(Sender<Command>),
    Inline(Weak<Inline>),
}

impl Handle {
    /// Without a writer the command is dropped, and its caller gets the error `Closed`.
    pub(crate) fn submit(&self, command: Command) {
        match self {
            Self::Threaded(sender) => drop(sender.send(command)),
            Self::Inline(inline) => {
                if let Some(inline) = inline.upgrade() {
                    inline.writer().process(vec![command], false, self);
                    inline.changed.notify_waiters();
                }
            }
        }
    }

    /// Gives a lease back.
    pub(crate) fn release(&self, kind: LeaseKind, token: String) {
        self.submit(Command::Release(kind, token));
    }
}
