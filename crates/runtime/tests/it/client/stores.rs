//! Stores that note their calls.

use async_trait::async_trait;
use outlast_memory::MemoryProvider;
use outlast_provider::{
    InstanceOutcome, InstanceWatch, Interest, Provider, ProviderError, StartOutcome, StartRequest,
    forward_provider,
};
use std::sync::Mutex;
use tokio::time::Instant;

/// The methods of the older contract whose calls are noted.
const NOTED: &[&str] = &[
    "read",
    "read_with_execution",
    "enqueue_for_orchestrator",
    "get_custom_status",
    "get_kv_value",
    "get_kv_all_values",
    "get_instance_stats",
];

/// The calls with their times, and the call that fails.
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

    /// The times of a call, in milliseconds.
    pub(crate) fn times(&self, call: &str) -> Vec<u64> {
        let noted = self.noted.lock().unwrap();
        noted.iter().filter(|(noted, _)| *noted == call).map(|(_, at)| *at).collect()
    }

    /// Forgets the calls so far.
    pub(crate) fn forget(&self) {
        self.noted.lock().unwrap().clear();
    }

    /// All calls.
    pub(crate) fn calls(&self) -> Vec<&'static str> {
        self.noted.lock().unwrap().iter().map(|(call, _)| *call).collect()
    }
}

/// A store that forwards the methods of the older contract and the given methods. Other methods have their default body.
macro_rules! store {
    ($name:ident { $($more:item)* }) => {
        impl $name {
            pub(crate) fn new() -> Self {
                Self { notes: Notes::new() }
            }

            async fn noted<T>(
                &self,
                method: &'static str,
                call: impl Future<Output = Result<T, ProviderError>>,
            ) -> Result<T, ProviderError> {
                if NOTED.contains(&method) {
                    self.notes.note(method)?;
                }
                call.await
            }
        }

        #[async_trait]
        impl Provider for $name {
            forward_provider!(
                Provider,
                |this| this.notes.inner,
                around(noted),
                except(
                    name,
                    version,
                    as_management_capability,
                    fetch_turn,
                    load_turn,
                    load_turn_within,
                    commit_turn,
                    fetch_work_items,
                    complete_with_turn,
                    fuses_outcomes,
                    complete_all_with_turn,
                    read_outcome,
                    enqueue_within,
                    enqueue_once,
                    start_orchestration,
                    watch_instance
                )
            );
            $($more)*
        }
    };
}

/// A store with the methods of the older contract: no outcome read, no watch, no management.
pub(crate) struct Plain {
    pub(crate) notes: Notes,
}

store!(Plain {});

/// A store that reads outcomes and supports watches.
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

/// A store whose watches never resolve, as if other processes made all commits.
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
