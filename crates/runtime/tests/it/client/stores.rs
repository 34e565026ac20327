//! Stores that note what they are asked.

use async_trait::async_trait;
use outlast_memory::MemoryProvider;
use outlast_model::{Event, SystemStats, WorkItem};
use outlast_provider::{
    DispatcherCapabilityFilter, ExecutionMetadata, InstanceOutcome, InstanceWatch, Interest,
    OrchestrationItem, Provider, ProviderError, ScheduledActivityIdentifier, SessionFetchConfig,
    StartOutcome, StartRequest, TagFilter,
};
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// What was asked and when, and what fails.
pub(crate) struct Notes {
    pub(crate) inner: MemoryProvider,
    since: Instant,
    noted: Mutex<Vec<(&'static str, u64)>>,
    broken: Mutex<Option<&'static str>>,
}

impl Notes {
    fn new() -> Self {
        let (noted, broken) = (Mutex::default(), Mutex::default());
        Self { inner: MemoryProvider::new(), since: Instant::now(), noted, broken }
    }

    fn note(&self, call: &'static str) -> Result<&MemoryProvider, ProviderError> {
        self.noted.lock().unwrap().push((call, self.since.elapsed().as_millis() as u64));
        match *self.broken.lock().unwrap() {
            Some(broken) if broken == call => Err(ProviderError::retryable(call, "the disk is away")),
            _ => Ok(&self.inner),
        }
    }

    /// From now on this call fails.
    pub(crate) fn break_down(&self, call: &'static str) {
        *self.broken.lock().unwrap() = Some(call);
    }

    /// When this was asked, in milliseconds.
    pub(crate) fn times(&self, call: &str) -> Vec<u64> {
        let noted = self.noted.lock().unwrap();
        noted.iter().filter(|(noted, _)| *noted == call).map(|(_, at)| *at).collect()
    }

    /// What was asked so far does not count.
    pub(crate) fn forget(&self) {
        self.noted.lock().unwrap().clear();
    }

    /// Everything that was asked.
    pub(crate) fn calls(&self) -> Vec<&'static str> {
        self.noted.lock().unwrap().iter().map(|(call, _)| *call).collect()
    }
}

/// The contract's methods, and those given.
macro_rules! store {
    ($name:ident { $($more:item)* }) => {
        impl $name {
            pub(crate) fn new() -> Self {
                Self { notes: Notes::new() }
            }
        }

        #[async_trait]
        impl Provider for $name {
            async fn fetch_orchestration_item(
                &self,
                lock_timeout: Duration,
                poll_timeout: Duration,
                filter: Option<&DispatcherCapabilityFilter>,
            ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
                self.notes.inner.fetch_orchestration_item(lock_timeout, poll_timeout, filter).await
            }
            async fn ack_orchestration_item(
                &self,
                lock_token: &str,
                execution_id: u64,
                delta: Vec<Event>,
                activities: Vec<WorkItem>,
                messages: Vec<WorkItem>,
                metadata: ExecutionMetadata,
                cancelled: Vec<ScheduledActivityIdentifier>,
            ) -> Result<(), ProviderError> {
                let inner = &self.notes.inner;
                inner
                    .ack_orchestration_item(
                        lock_token, execution_id, delta, activities, messages, metadata, cancelled,
                    )
                    .await
            }
            async fn abandon_orchestration_item(
                &self,
                lock_token: &str,
                delay: Option<Duration>,
                ignore_attempt: bool,
            ) -> Result<(), ProviderError> {
                self.notes.inner.abandon_orchestration_item(lock_token, delay, ignore_attempt).await
            }
            async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
                self.notes.note("read")?.read(instance).await
            }
            async fn read_with_execution(&self, instance: &str, id: u64) -> Result<Vec<Event>, ProviderError> {
                self.notes.note("read_with_execution")?.read_with_execution(instance, id).await
            }
            async fn append_with_execution(
                &self,
                instance: &str,
                execution_id: u64,
                new_events: Vec<Event>,
            ) -> Result<(), ProviderError> {
                self.notes.inner.append_with_execution(instance, execution_id, new_events).await
            }
            async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
                self.notes.inner.enqueue_for_worker(item).await
            }
            async fn fetch_work_item(
                &self,
                lock_timeout: Duration,
                poll_timeout: Duration,
                session: Option<&SessionFetchConfig>,
                tag_filter: &TagFilter,
            ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
                self.notes.inner.fetch_work_item(lock_timeout, poll_timeout, session, tag_filter).await
            }
            async fn ack_work_item(&self, token: &str, done: Option<WorkItem>) -> Result<(), ProviderError> {
                self.notes.inner.ack_work_item(token, done).await
            }
            async fn renew_work_item_lock(&self, token: &str, by: Duration) -> Result<(), ProviderError> {
                self.notes.inner.renew_work_item_lock(token, by).await
            }
            async fn renew_session_lock(
                &self,
                owner_ids: &[&str],
                extend_for: Duration,
                idle_timeout: Duration,
            ) -> Result<usize, ProviderError> {
                self.notes.inner.renew_session_lock(owner_ids, extend_for, idle_timeout).await
            }
            async fn cleanup_orphaned_sessions(&self, idle: Duration) -> Result<usize, ProviderError> {
                self.notes.inner.cleanup_orphaned_sessions(idle).await
            }
            async fn abandon_work_item(
                &self,
                token: &str,
                delay: Option<Duration>,
                ignore_attempt: bool,
            ) -> Result<(), ProviderError> {
                self.notes.inner.abandon_work_item(token, delay, ignore_attempt).await
            }
            async fn renew_orchestration_item_lock(
                &self,
                token: &str,
                extend_for: Duration,
            ) -> Result<(), ProviderError> {
                self.notes.inner.renew_orchestration_item_lock(token, extend_for).await
            }
            async fn enqueue_for_orchestrator(
                &self,
                item: WorkItem,
                delay: Option<Duration>,
            ) -> Result<(), ProviderError> {
                self.notes.note("enqueue_for_orchestrator")?.enqueue_for_orchestrator(item, delay).await
            }
            async fn get_custom_status(
                &self,
                instance: &str,
                last_seen: u64,
            ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
                self.notes.note("get_custom_status")?.get_custom_status(instance, last_seen).await
            }
            async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
                self.notes.note("get_kv_value")?.get_kv_value(instance, key).await
            }
            async fn get_kv_all_values(
                &self,
                instance: &str,
            ) -> Result<HashMap<String, String>, ProviderError> {
                self.notes.note("get_kv_all_values")?.get_kv_all_values(instance).await
            }
            async fn get_instance_stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
                self.notes.note("get_instance_stats")?.get_instance_stats(instance).await
            }
            $($more)*
        }
    };
}

/// Knows the contract's methods only: no outcome read, no watch, no management.
pub(crate) struct Plain {
    pub(crate) notes: Notes,
}

store!(Plain {});

/// Reads outcomes and can be watched.
pub(crate) struct Noting {
    pub(crate) notes: Notes,
}

store!(Noting {
    async fn read_outcome(&self, instance: &str) -> Result<Option<InstanceOutcome>, ProviderError> {
        self.notes.note("read_outcome")?.read_outcome(instance).await
    }
    async fn start_orchestration(&self, request: StartRequest) -> Result<StartOutcome, ProviderError> {
        self.notes.note("start_orchestration")?.start_orchestration(request).await
    }
    fn watch_instance(&self, instance: &str, interest: Interest) -> Option<InstanceWatch> {
        self.notes.note(match interest {
            Interest::Ended => "watch for the end",
            Interest::Any => "watch for anything",
        }).ok()?.watch_instance(instance, interest)
    }
});

/// Can be watched, but never tells: as if everything were committed by other processes.
pub(crate) struct Silent {
    pub(crate) notes: Notes,
}

store!(Silent {
    async fn read_outcome(&self, instance: &str) -> Result<Option<InstanceOutcome>, ProviderError> {
        self.notes.note("read_outcome")?.read_outcome(instance).await
    }
    fn watch_instance(&self, _: &str, _: Interest) -> Option<InstanceWatch> {
        Some(Box::pin(std::future::pending()))
    }
});
