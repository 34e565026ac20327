//! PostgreSQL: a schema on a server that all processes share, and faults of that server.

use outlast::providers::postgres::{PostgresProvider, ProviderConfig};
use outlast_chaos::proxy::{Cut, Proxy};
use outlast_chaos::server::{ServerControl, URL as SERVER, variable};
use outlast_testkit::rng::Rng;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

/// The variable with the URL of the server behind the proxy, for workers.
pub(crate) const URL: &str = "OUTLAST_CHAOS_POSTGRES_URL";

const LEFTOVERS: &str = include_str!("../sql/leftovers.sql");
const HAVE_AMCHECK: &str = include_str!("../sql/have_amcheck.sql");
const UNSOUND_INDEXES: &str = include_str!("../sql/check_indexes.sql");
const ANY_BACKEND: &str = include_str!("../sql/terminate_any_backend.sql");

/// Requests of commits are larger than this; most other requests are smaller.
pub(crate) const COMMIT_BYTES: usize = 1_500;

/// The deadline of a transaction of the store, as [`Tools::open`] configures it. After it, the store gives up the
/// connection.
pub(crate) const DEADLINE: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub(super) struct Tools {
    pub(super) provider: Arc<PostgresProvider>,
    server: String,
}

impl Tools {
    pub(super) async fn open(disk: &Path) -> Result<Self, String> {
        let server = std::env::var(URL).or_else(|_| variable(SERVER))?;
        let schema = schema_of(disk);
        for tries in 1.. {
            let config = ProviderConfig::url(&server).schema(&schema).deadline(DEADLINE);
            match PostgresProvider::new_with_config(config).await {
                Ok(provider) => return Ok(Self { provider: Arc::new(provider), server }),
                // A killed server is started again; a minute is enough.
                Err(error) if error.is_retryable() && tries < 600 => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                Err(error) => return Err(format!("the store could not be opened: {error}")),
            }
        }
        Err("the store could not be opened".to_string())
    }

    /// Checks every index against its table, row by row.
    pub(super) async fn damage(&self) -> Result<Vec<String>, String> {
        let connected = self.connect().await?;
        let has_it = connected.client.batch_execute(HAVE_AMCHECK).await;
        has_it.map_err(|error| format!("amcheck: {error}"))?;
        match connected.client.simple_query(UNSOUND_INDEXES).await {
            Ok(_) => Ok(Vec::new()),
            // The check ends at the first damaged index.
            Err(error) => Ok(vec![error.to_string()]),
        }
    }

    pub(super) async fn leftovers(&self) -> Result<Vec<String>, String> {
        let connected = self.connect().await?;
        let rows = connected.client.simple_query(LEFTOVERS).await.map_err(|error| error.to_string())?;
        let text = |row: SimpleQueryMessage| match row {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_string),
            _ => None,
        };
        Ok(rows.into_iter().filter_map(text).collect())
    }

    /// A connection whose search path is the store's schema.
    async fn connect(&self) -> Result<Connected, String> {
        let connected = connect(&self.server).await?;
        // `schema_of` made the name, so it needs no escaping.
        let path = format!("SET search_path TO \"{}\"", self.provider.schema_name());
        connected.client.batch_execute(&path).await.map_err(|error| error.to_string())?;
        Ok(connected)
    }
}

/// The schema of a phase, which all its processes derive from the folder.
fn schema_of(disk: &Path) -> String {
    let names = disk.components().rev().take(2).map(|part| part.as_os_str().to_string_lossy());
    let name: String = names.collect::<Vec<_>>().join("_");
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}

/// A connection of the supervisor, and the task that serves it.
struct Connected {
    client: Client,
    _task: JoinSet<Result<(), tokio_postgres::Error>>,
}

async fn connect(url: &str) -> Result<Connected, String> {
    let connected = tokio_postgres::connect(url, NoTls).await;
    let (client, connection) = connected.map_err(|error| error.to_string())?;
    let mut task = JoinSet::new();
    task.spawn(connection);
    Ok(Connected { client, _task: task })
}

/// The server of a run, and counts of its faults.
pub(crate) struct Server {
    url: String,
    control: ServerControl,
    proxy: Proxy,
    pub(crate) backend_kills: u64,
    pub(crate) crashes: u64,
    pub(crate) severed: u64,
}

impl Server {
    pub(crate) async fn find() -> Result<Self, String> {
        let url = variable(SERVER)?;
        let config: Config = url.parse().map_err(|error| format!("{SERVER}: {error}"))?;
        let port = config.get_ports().first().copied().unwrap_or(5432);
        let proxy = Proxy::start(([127, 0, 0, 1], port).into()).await;
        let proxy = proxy.map_err(|error| format!("the proxy could not be started: {error}"))?;
        Ok(Self { url, control: ServerControl::find()?, proxy, backend_kills: 0, crashes: 0, severed: 0 })
    }

    /// The URL of the server behind the proxy.
    pub(crate) fn behind_proxy(&self) -> Result<String, String> {
        let (user, place) = self.url.rsplit_once('@').ok_or_else(|| format!("{SERVER} names no user"))?;
        let database = place.split_once('/').map_or("postgres", |(_, database)| database);
        Ok(format!("{user}@{}/{database}?sslmode=disable", self.proxy.address()))
    }

    /// The proxy between workers and server.
    pub(crate) fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// Number of connections that were cut in a commit.
    pub(crate) fn cuts(&self) -> u64 {
        self.proxy.cuts()
    }

    /// Injects a random fault into the server or the network.
    pub(crate) async fn inject_fault(&mut self, rng: &mut Rng) -> Result<(), String> {
        match rng.below(100) {
            0..3 => self.crash().await,
            3..55 => self.terminate_backend().await,
            55..95 => {
                let cuts = [Cut::Before, Cut::Within, Cut::After];
                self.proxy.cut_at(cuts[rng.index(cuts.len())], COMMIT_BYTES);
                Ok(())
            }
            _ => {
                self.proxy.sever();
                self.severed += 1;
                Ok(())
            }
        }
    }

    /// Terminates one backend of the server.
    async fn terminate_backend(&mut self) -> Result<(), String> {
        let connected = connect(&self.url).await?;
        let terminated =
            connected.client.simple_query(ANY_BACKEND).await.map_err(|error| error.to_string())?;
        let is_row = |message: &&SimpleQueryMessage| matches!(message, SimpleQueryMessage::Row(_));
        self.backend_kills += terminated.iter().filter(is_row).count() as u64;
        Ok(())
    }

    /// Crashes the server and starts it again.
    async fn crash(&mut self) -> Result<(), String> {
        self.crashes += 1;
        self.control.crash().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_name_contains_run_and_phase() {
        assert_eq!(schema_of(Path::new("/tmp/outlast-chaos-17/kills")), "kills_outlast_chaos_17");
    }
}
