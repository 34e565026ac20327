//! Cosmos DB: a container of an account that all processes share. The account is a rig in a process of its own, which no fault
//! kills, or the one that `COSMOS_ENDPOINT` and `COSMOS_KEY` name.

use outlast::providers::ProviderAdmin as _;
use outlast::providers::cosmos::{
    CosmosDBOptions, CosmosDBProvider, CosmosDBProviderConfig, OutboxFaultInjector,
};
use outlast_cosmos_rig::{Rig, RigOptions};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

const ENDPOINT: &str = "COSMOS_ENDPOINT";
const KEY: &str = "COSMOS_KEY";
const DATABASE: &str = "outlast-chaos";

/// The number of deliveries between instances that a new worker leaves to the reconcilers, as a worker that is killed between
/// commit and delivery does.
const LEFT_TO_RECONCILERS: u32 = 3;
const RECONCILER: Duration = Duration::from_millis(300);
const POLL: Duration = Duration::from_millis(100);

const TO_START: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub(super) struct Tools {
    pub(super) provider: Arc<CosmosDBProvider>,
}

impl Tools {
    /// Opens the container of a phase. A worker finds the account in its environment.
    pub(super) async fn open(disk: &Path, account: Option<&Account>) -> Result<Self, String> {
        let (endpoint, key) = match account {
            Some(account) => (account.endpoint.clone(), account.key.clone()),
            None => (variable(ENDPOINT)?, variable(KEY)?),
        };
        let config = CosmosDBProviderConfig {
            endpoint,
            key,
            database: DATABASE.to_string(),
            container: container_of(disk),
            reconciler_interval: RECONCILER,
            reconciler_age_threshold: RECONCILER,
            ..CosmosDBProviderConfig::default()
        };
        let options = CosmosDBOptions { poll_interval: POLL, ..CosmosDBOptions::default() };
        let opened = CosmosDBProvider::open(config, options).await;
        let mut provider = opened.map_err(|error| format!("the store could not be opened: {error}"))?;
        if account.is_none() {
            provider.set_outbox_fault_injector(OutboxFaultInjector::fail_next(LEFT_TO_RECONCILERS));
        }
        Ok(Self { provider: Arc::new(provider) })
    }

    /// Documents that do not decode, and messages between instances that were never delivered.
    pub(super) async fn damage(&self) -> Result<Vec<String>, String> {
        match self.provider.dump().await {
            Ok(lines) => Ok(lines.into_iter().filter(|line| line.starts_with("contradiction ")).collect()),
            Err(error) => Ok(vec![error.to_string()]),
        }
    }

    pub(super) async fn leftovers(&self) -> Result<Vec<String>, String> {
        let depths = self.provider.get_queue_depths().await.map_err(|error| error.to_string())?;
        if depths.orchestrator_queue + depths.worker_queue > 0 {
            return Ok(vec![format!("{depths:?}")]);
        }
        let lines = self.provider.dump().await.map_err(|error| error.to_string())?;
        let kinds = ["message ", "work ", "lease ", "dead ", "contradiction "];
        let is_left = |line: &String| kinds.iter().any(|kind| line.starts_with(kind));
        // Payloads are at the end of a line.
        let shown = |line: String| line.chars().take(120).collect();
        Ok(lines.into_iter().filter(is_left).map(shown).collect())
    }
}

fn variable(name: &str) -> Result<String, String> {
    let value = std::env::var(name).ok().filter(|value| !value.is_empty());
    value
        .ok_or_else(|| format!("{name} is not set: `outlast-chaos supervise cosmos` sets it for its workers"))
}

/// The container of a phase, which all its processes derive from the folder.
fn container_of(disk: &Path) -> String {
    let names = disk.components().rev().take(2).map(|part| part.as_os_str().to_string_lossy());
    names.collect::<Vec<_>>().join("-")
}

/// The account of a run, and the rig that serves it.
pub(crate) struct Account {
    endpoint: String,
    key: String,
    /// The process of the rig, which ends when this value is dropped: the rig reads its input until the end. `None`: the account is
    /// not a rig of this run.
    _rig: Option<Child>,
}

impl Account {
    /// The account of the environment, or a rig in a new process.
    pub(crate) async fn find() -> Result<Self, String> {
        match (variable(ENDPOINT), variable(KEY)) {
            (Ok(endpoint), Ok(key)) => Ok(Self { endpoint, key, _rig: None }),
            (Err(_), Err(_)) => Self::start().await,
            (Err(error), _) | (_, Err(error)) => Err(error),
        }
    }

    async fn start() -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("the rig could not be started: {error}");
        let own = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(own);
        command.arg("rig").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut rig = command.spawn().map_err(failed)?;
        let output = rig.stdout.take().ok_or("the rig has no output")?;
        let mut lines = BufReader::new(output).lines();
        let mut read = async |name: &str| {
            let line = timeout(TO_START, lines.next_line()).await.map_err(|_| "the rig prints no address")?;
            let line = line.map_err(failed)?.unwrap_or_default();
            let value = line.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
            value.map(str::to_string).ok_or_else(|| format!("the rig prints no {name}"))
        };
        let (endpoint, key) = (read(ENDPOINT).await?, read(KEY).await?);
        Ok(Self { endpoint, key, _rig: Some(rig) })
    }

    /// The variables from which workers know the account.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        vec![(ENDPOINT, self.endpoint.clone()), (KEY, self.key.clone())]
    }
}

/// Serves a rig until the input of this process ends.
pub(crate) async fn serve() -> Result<(), String> {
    let options = RigOptions { keeps_records: false, ..RigOptions::default() };
    let rig = Rig::start_with(options).await.map_err(|error| error.to_string())?;
    println!("{ENDPOINT}={}\n{KEY}={}", rig.endpoint(), rig.key());
    let mut input = Vec::new();
    tokio::io::stdin().read_to_end(&mut input).await.map_err(|error| error.to_string())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn container_name_contains_run_and_phase() {
        assert_eq!(container_of(Path::new("/tmp/outlast-chaos-17/kills")), "kills-outlast-chaos-17");
    }
}
