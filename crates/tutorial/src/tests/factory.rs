//! How the validation suite gets at the store.

use crate::FileStore;
use crate::state::State;
use async_trait::async_trait;
use outlast_conformance::{ProviderFactory, TokioClock};
use outlast_provider::{Clock, Provider};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

// guide: factory
/// Opens a store in a folder of its own, and reaches into the store that it opened last.
#[derive(Default)]
pub(super) struct Factory {
    newest: Mutex<Option<Opened>>,
}

#[derive(Clone)]
struct Opened {
    store: Arc<FileStore>,
    clock: TokioClock,
    /// Deleted together with the last use of the store.
    _folder: Arc<TempDir>,
}

#[async_trait]
impl ProviderFactory for Factory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        // Leases end by tokio's clock, which the tests stop and move.
        let clock = TokioClock::start();
        let path = folder.path().join("store.json");
        let store = Arc::new(FileStore::open_with_clock(&path, Arc::new(clock)).unwrap());
        *self.newest.lock().unwrap() = Some(Opened { store: store.clone(), clock, _folder: folder });
        store
    }

    fn now_ms(&self) -> u64 {
        self.newest().clock.now_ms()
    }

    fn waits(&self) -> bool {
        true
    }

    fn shows_pending(&self) -> bool {
        true
    }

    fn corrupts_queues(&self) -> bool {
        true
    }

    async fn corrupt_instance_history(&self, instance: &str) {
        self.damage(|state| {
            let executions = state.history.get_mut(instance).unwrap().values_mut();
            executions.flat_map(|events| events.values_mut()).for_each(|text| *text = DAMAGED.to_string());
        });
    }

    async fn corrupt_orchestrator_messages(&self, instance: &str) {
        self.damage(|state| {
            let messages = state.messages.values_mut().filter(|message| message.instance == instance);
            messages.for_each(|message| message.text = DAMAGED.to_string());
        });
    }

    async fn corrupt_work_items(&self, instance: &str) {
        self.damage(|state| {
            let activities = state.activities.values_mut().filter(|activity| activity.instance == instance);
            activities.for_each(|activity| activity.text = DAMAGED.to_string());
        });
    }

    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        self.newest().store.look(|state, _| {
            let messages = state.messages.values().filter(|message| message.instance == instance);
            messages.map(|message| message.attempts).max().unwrap_or(0)
        })
    }
}

const DAMAGED: &str = "NOT_VALID_JSON{{{";

impl Factory {
    fn newest(&self) -> Opened {
        self.newest.lock().unwrap().clone().unwrap()
    }

    fn damage(&self, damage: impl FnOnce(&mut State)) {
        let result = self.newest().store.change("damage", |state, _| {
            damage(state);
            Ok(())
        });
        result.unwrap();
    }
}
// guide: end
