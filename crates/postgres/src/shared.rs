//! The state that the tasks of a store share: the connections, the configuration, and the scheduler behind a lock.

use crate::aside::SettingAside;
use crate::db::Db;
use crate::outcomes::Outcomes;
use crate::owner::Secrets;
use crate::room::Room;
use crate::scheduler::{Limits, Scheduler};
use crate::{PostgresError, ProviderConfig};
use outlast_provider_kit::Watches;
use outlast_provider_kit::queue::PerQueue;
use outlast_provider_kit::token::Owner;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::time::Instant;

pub(crate) struct Shared {
    pub(crate) db: Db,
    pub(crate) config: ProviderConfig,
    pub(crate) watches: Arc<Watches>,
    /// Identifies this store object among all that share the database.
    pub(crate) id: String,
    pub(crate) secrets: Secrets,
    scheduler: Mutex<Scheduler>,
    pub(crate) wake_lane: Notify,
    pub(crate) wake_client_lane: Notify,
    wake_listener: Notify,
    /// Reads that share round trips.
    pub(crate) outcomes: Outcomes,
    /// Bounds the requests that wait.
    pub(crate) room: Room,
    pub(crate) setting_aside: SettingAside,
}

impl Shared {
    pub(crate) fn new(db: Db, config: ProviderConfig) -> Arc<Self> {
        let id = config.entropy.next_u128();
        let secrets = Secrets::new(Arc::clone(&config.entropy), Owner::of(id), config.listen);
        // `end_leases_1` knows that the id begins with the name of the owner.
        let id = format!("{id:032x}");
        let limits = Limits {
            lanes: config.lanes_in_force(),
            has_client_lane: config.has_client_lane(),
            poll_interval: config.poll_interval,
            idle_poll_interval: config.idle_poll_interval,
        };
        Arc::new(Self {
            db,
            config,
            watches: Arc::default(),
            id,
            secrets,
            scheduler: Mutex::new(Scheduler::new(limits)),
            wake_lane: Notify::new(),
            wake_client_lane: Notify::new(),
            wake_listener: Notify::new(),
            outcomes: Outcomes::default(),
            room: Room::default(),
            setting_aside: SettingAside::default(),
        })
    }

    /// Runs a transition of the scheduler under the lock, and then wakes the tasks that have something to do.
    pub(crate) fn update<R>(&self, transition: impl FnOnce(&mut Scheduler, Instant) -> R) -> R {
        let mut scheduler = self.scheduler();
        let result = transition(&mut scheduler, Instant::now());
        let wake = scheduler.take_wake();
        drop(scheduler);
        if wake.lane {
            self.wake_lane.notify_one();
        }
        if wake.client_lane {
            self.wake_client_lane.notify_one();
        }
        if wake.listener {
            self.wake_listener.notify_one();
        }
        result
    }

    /// The scheduler, to read. A panic under the lock leaves it as it was between two statements, so the lock is not poisoned.
    pub(crate) fn scheduler(&self) -> MutexGuard<'_, Scheduler> {
        self.scheduler.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a task of the store panicked and continues.
    pub(crate) fn panicked(&self, task: &str, panic: &str) {
        self.db.counters.panics.add(1);
        tracing::error!(target: "duroxide::providers::postgres", task, panic, "a task of the store panicked and continues");
    }

    /// The error for a call whose answer was dropped.
    pub(crate) fn dropped(&self, instance: &str) -> PostgresError {
        match self.is_closed() {
            true => PostgresError::Closed,
            false => PostgresError::Panicked {
                instance: instance.to_string(),
                details: "the answer to the call was lost; the log has the panic".to_string(),
            },
        }
    }

    /// Reports that these queues may have a fetchable turn or activity that no poll of this process has seen.
    pub(crate) fn on_remote_change(&self, queues: PerQueue<bool>) {
        self.update(|scheduler, _| scheduler.on_remote_change(queues));
    }

    /// Plans a later notification of another process about these queues, which is sent if items wait then. Runs before callers
    /// receive their replies: a caller may close the store.
    pub(crate) fn put_off(&self, queues: PerQueue<bool>) {
        if queues.is_any() {
            self.update(|scheduler, now| scheduler.put_off(queues, now));
        }
    }

    /// A turn or activity becomes fetchable in this time.
    pub(crate) fn on_due_in(&self, ms: u64) {
        self.update(|scheduler, now| scheduler.on_due_in(ms, now));
    }

    pub(crate) fn close(&self) {
        self.update(|scheduler, _| scheduler.close());
        self.wake_lane.notify_waiters();
        self.outcomes.wake();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.scheduler().is_closed()
    }

    /// Waits until the listener has something to do.
    pub(crate) async fn listener_woken(&self) {
        self.wake_listener.notified().await;
    }

    pub(crate) fn wake_lane(&self) {
        self.wake_lane.notify_one();
    }

    pub(crate) fn wake_listener(&self) {
        self.wake_listener.notify_one();
    }
}
