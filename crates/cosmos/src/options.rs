//! Settings of a store.

use crate::leases::LeaseProvider;
use crate::staging::Limits;
use azure_core::credentials::TokenCredential;
use outlast_provider::{Clock, Entropy, MessageBound, OsEntropy};
use outlast_provider_kit::orphans::DEFAULT_LIFE_MS;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The address of Microsoft's emulator.
const EMULATOR_ENDPOINT: &str = "http://localhost:8081";

/// The key of Microsoft's emulator, which is published.
const EMULATOR_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// The number of instances up to which counts are exact.
const COUNTED_EXACTLY: usize = 5_000;

/// The account, the container and the pace of a [`CosmosDBProvider`](crate::CosmosDBProvider).
#[derive(Clone)]
pub struct CosmosDBProviderConfig {
    /// The address of the account, such as `https://name.documents.azure.com`.
    pub endpoint: String,
    /// The key of the account. Unused with a token credential.
    pub key: String,
    /// The database. It is created if it does not exist.
    pub database: String,
    /// The container. It is created if it does not exist.
    pub container: String,
    /// The number of orchestration dispatchers. Accepted and unused: a process serves all its dispatchers at once.
    pub orch_concurrency: u32,
    /// The number of worker dispatchers. Accepted and unused.
    pub worker_concurrency: u32,
    /// The interval at which undelivered messages between instances are searched for.
    pub reconciler_interval: Duration,
    /// The age at which a message between instances counts as undelivered.
    pub reconciler_age_threshold: Duration,
}

impl Default for CosmosDBProviderConfig {
    fn default() -> Self {
        Self {
            endpoint: String::new(),
            key: String::new(),
            database: "duroxide".to_string(),
            container: "duroxide".to_string(),
            orch_concurrency: 1,
            worker_concurrency: 1,
            reconciler_interval: Duration::from_secs(2),
            reconciler_age_threshold: Duration::from_secs(2),
        }
    }
}

impl CosmosDBProviderConfig {
    /// The account of `COSMOS_ENDPOINT` and `COSMOS_KEY`, with the database of `COSMOS_DATABASE`. A variable that is not set
    /// counts as that of Microsoft's emulator on this machine, and the database as `duroxide`.
    pub fn from_env() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(read: impl Fn(&str) -> Option<String>) -> Self {
        let read = |name: &str, default: &str| {
            read(name).filter(|value| !value.is_empty()).unwrap_or_else(|| default.to_string())
        };
        let default = Self::default();
        Self {
            endpoint: read("COSMOS_ENDPOINT", EMULATOR_ENDPOINT),
            key: read("COSMOS_KEY", EMULATOR_KEY),
            database: read("COSMOS_DATABASE", &default.database),
            ..default
        }
    }
}

impl fmt::Debug for CosmosDBProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CosmosDBProviderConfig")
            .field("endpoint", &self.endpoint)
            .field("key", &if self.key.is_empty() { "" } else { "***" })
            .field("database", &self.database)
            .field("container", &self.container)
            .field("orch_concurrency", &self.orch_concurrency)
            .field("worker_concurrency", &self.worker_concurrency)
            .field("reconciler_interval", &self.reconciler_interval)
            .field("reconciler_age_threshold", &self.reconciler_age_threshold)
            .finish()
    }
}

/// Further settings of a [`CosmosDBProvider`](crate::CosmosDBProvider). The defaults suit most stores.
#[derive(Clone)]
pub struct CosmosDBOptions {
    /// Entra ID: the credential of the identity. `None` uses the key.
    pub credential: Option<Arc<dyn TokenCredential>>,
    /// Regions in the order in which the SDK considers them; the first one is that of the writes. Empty: the regions of the account.
    pub preferred_regions: Vec<String>,
    /// The number of messages of an instance that one fetch of a turn takes. The next turns take the rest.
    pub message_bound: MessageBound,
    /// The time for which a control message for an instance that never starts is kept.
    pub orphan_life: Duration,
    /// The longest time between two reads of the hints of other processes, while a fetch waits.
    pub poll_interval: Duration,
    /// Whether opening creates a database and a container that do not exist. Without it, opening writes nothing, and a key with
    /// read access is accepted: for tools that only read a store.
    pub creates: bool,
    /// The interval at which a process searches for work whose hint was lost, and for timers that are due soon. At most a minute.
    pub repair_interval: Duration,
    /// The longest time of a request: from 50 ms to 10 s. A request under a lease has a third of the lease, if that is shorter.
    pub deadline: Duration,
    /// Hands out the dispatch slots of instances whose work this process looks for. `None`: the processes share them through a table in the
    /// container. All processes of a container should do the same.
    pub leases: Option<Arc<dyn LeaseProvider>>,
    /// The store's time. `None` is the machine's clock, corrected by the clock of Cosmos DB.
    pub clock: Option<Arc<dyn Clock>>,
    /// The source of the secrets in lock tokens.
    pub entropy: Arc<dyn Entropy>,
    /// The clock of the machine, for tests. `None` is that of this machine.
    #[doc(hidden)]
    pub machine: Option<Arc<dyn Clock>>,
    /// The size of a batch in operations and bytes, for tests: smaller batches stage more turns.
    #[doc(hidden)]
    pub batch: (usize, usize),
    /// The first pause before a request of [`open`](crate::CosmosDBProvider::open) is repeated, for tests. Later pauses double up to
    /// sixteen times.
    #[doc(hidden)]
    pub opening_pause: Duration,
    /// The intents that one round of the reconciler reads, for tests.
    #[doc(hidden)]
    pub intents_at_once: usize,
    /// The number of instances up to which counts are exact, for tests.
    #[doc(hidden)]
    pub counted_exactly: usize,
}

impl Default for CosmosDBOptions {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            credential: None,
            preferred_regions: Vec::new(),
            message_bound: MessageBound::default(),
            orphan_life: Duration::from_millis(DEFAULT_LIFE_MS),
            poll_interval: Duration::from_secs(1),
            creates: true,
            repair_interval: Duration::from_secs(60),
            deadline: crate::limit::LONGEST,
            leases: None,
            clock: None,
            entropy: Arc::new(OsEntropy),
            machine: None,
            batch: (limits.operations, limits.bytes),
            opening_pause: Duration::from_millis(500),
            intents_at_once: crate::reconcile::MOST_AT_ONCE,
            counted_exactly: COUNTED_EXACTLY,
        }
    }
}

impl CosmosDBOptions {
    pub(crate) fn limits(&self) -> Limits {
        Limits { operations: self.batch.0.clamp(2, 100), bytes: self.batch.1 }
    }
}

impl fmt::Debug for CosmosDBOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CosmosDBOptions")
            .field("has_credential", &self.credential.is_some())
            .field("preferred_regions", &self.preferred_regions)
            .field("message_bound", &self.message_bound)
            .field("orphan_life", &self.orphan_life)
            .field("poll_interval", &self.poll_interval)
            .field("creates", &self.creates)
            .field("repair_interval", &self.repair_interval)
            .field("deadline", &self.deadline)
            .field("has_leases", &self.leases.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_and_variables_are_those_of_the_published_provider() {
        let config = CosmosDBProviderConfig::default();
        assert_eq!((config.endpoint.as_str(), config.key.as_str()), ("", ""));
        assert_eq!((config.database.as_str(), config.container.as_str()), ("duroxide", "duroxide"));
        assert_eq!((config.orch_concurrency, config.worker_concurrency), (1, 1));
        let two = Duration::from_secs(2);
        assert_eq!((config.reconciler_interval, config.reconciler_age_threshold), (two, two));

        let unset = CosmosDBProviderConfig::from_variables(|_| None);
        assert_eq!((unset.endpoint.as_str(), unset.database.as_str()), ("http://localhost:8081", "duroxide"));
        assert!(unset.key.starts_with("C2y6yDjf5"));
        let set = CosmosDBProviderConfig::from_variables(|name| Some(format!("{name}!")));
        assert_eq!(
            (set.endpoint.as_str(), set.key.as_str(), set.database.as_str()),
            ("COSMOS_ENDPOINT!", "COSMOS_KEY!", "COSMOS_DATABASE!")
        );
        assert_eq!(CosmosDBProviderConfig::from_variables(|_| Some(String::new())).database, "duroxide");
    }

    #[test]
    fn a_printed_configuration_has_no_key() {
        let config = CosmosDBProviderConfig { key: "secret".to_string(), ..Default::default() };
        assert!(!format!("{config:?}").contains("secret"), "{config:?}");
        assert!(!format!("{:?}", CosmosDBOptions::default()).contains("credential: Some"));
    }
}
