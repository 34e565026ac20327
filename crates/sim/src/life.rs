//! The lives of nodes, for clients in the process of a node. Such a client uses the store object of the process, and ends with the
//! process.

use crate::store::FaultyStore;
use outlast_provider::Provider;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// A life of a node.
pub(crate) struct Life {
    store: Arc<FaultyStore>,
    is_over: AtomicBool,
    end: Notify,
}

impl Life {
    pub(crate) fn new(store: Arc<FaultyStore>) -> Arc<Self> {
        Arc::new(Self { store, is_over: AtomicBool::new(false), end: Notify::new() })
    }

    /// The store object of the runtime.
    pub(crate) fn store(&self) -> Arc<dyn Provider> {
        Arc::<FaultyStore>::clone(&self.store)
    }

    /// Ends the process, with its clients.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Relaxed);
        self.end.notify_waiters();
    }

    /// Waits for the end of the process.
    pub(crate) async fn ended(&self) {
        let end = self.end.notified();
        if !self.is_over.load(Relaxed) {
            end.await;
        }
    }
}

/// The last life of each node.
#[derive(Default)]
pub(crate) struct Lives(Mutex<Vec<(usize, Arc<Life>)>>);

impl Lives {
    fn lock(&self) -> MutexGuard<'_, Vec<(usize, Arc<Life>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a node begins a life.
    pub(crate) fn begin(&self, node: usize, life: &Arc<Life>) {
        let mut lives = self.lock();
        lives.retain(|(other, _)| *other != node);
        lives.push((node, Arc::clone(life)));
    }

    /// Notes that the life of a node is over. The store object of the process is closed when its last client is gone.
    pub(crate) fn end(&self, node: usize) {
        self.lock().retain(|(other, _)| *other != node);
    }

    /// Drops all lives, because the world has ended.
    pub(crate) fn end_all(&self) {
        self.lock().clear();
    }

    /// The nodes that are up.
    pub(crate) fn nodes_up(&self) -> Vec<usize> {
        let lives = self.lock();
        lives.iter().filter(|(_, life)| !life.is_over.load(Relaxed)).map(|(node, _)| *node).collect()
    }

    /// The processes that are up.
    pub(crate) fn up(&self) -> Vec<Arc<Life>> {
        self.lock()
            .iter()
            .map(|(_, life)| Arc::clone(life))
            .filter(|life| !life.is_over.load(Relaxed))
            .collect()
    }
}
