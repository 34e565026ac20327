//! Cosmos DB stores: `cosmos://HOST/DATABASE/CONTAINER`. The key of the account is in `COSMOS_KEY`, never in the URL.

use super::password::decoded;
use super::{Intent, StoreUrl};
use crate::failure::Failure;
use outlast::providers::Provider;
use outlast::providers::cosmos::{CosmosDBOptions, CosmosDBProvider, CosmosDBProviderConfig};
use std::sync::Arc;
use std::time::Duration;

/// How long a user waits for the account.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Longer than a command runs: it delivers no messages between instances in place of a runtime.
const NEVER: Duration = Duration::from_secs(24 * 3_600);

/// Opens an existing store.
pub(super) async fn open(url: &StoreUrl, intent: Intent) -> Result<Arc<dyn Provider>, Failure> {
    let config = CosmosDBProviderConfig { reconciler_interval: NEVER, ..Settings::of(url)?.config };
    Ok(Arc::new(connect(config, intent == Intent::Create).await?))
}

/// Opens a store. `creates`: also one that does not exist.
pub(crate) async fn connect(
    config: CosmosDBProviderConfig,
    creates: bool,
) -> Result<CosmosDBProvider, Failure> {
    let endpoint = config.endpoint.clone();
    let options = CosmosDBOptions { creates, ..CosmosDBOptions::default() };
    let opened = tokio::time::timeout(CONNECT_TIMEOUT, CosmosDBProvider::open(config, options)).await;
    match opened {
        Ok(opened) => opened.map_err(|error| Failure::new(format!("the Cosmos DB store: {error}"))),
        Err(_) => Err(Failure::unavailable(format!(
            "the Cosmos DB account at {endpoint} could not be opened within {} s: check the host in --store or \
             COSMOS_ENDPOINT, and the network",
            CONNECT_TIMEOUT.as_secs()
        ))),
    }
}

/// The account and the container of a store.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) config: CosmosDBProviderConfig,
    /// Whether the URL names the container.
    pub(crate) names_container: bool,
}

impl Settings {
    /// The settings of a URL. `COSMOS_KEY` has the key; the other variables have the parts that the URL does not name.
    pub(crate) fn of(url: &StoreUrl) -> Result<Self, Failure> {
        let has_key = std::env::var_os("COSMOS_KEY").is_some_and(|key| !key.is_empty());
        Self::with(url, CosmosDBProviderConfig::from_env(), has_key)
    }

    fn with(url: &StoreUrl, mut config: CosmosDBProviderConfig, has_key: bool) -> Result<Self, Failure> {
        let (host, names) = parts(url.as_str()).map_err(|reason| {
            // The URL is not shown: it may hold a key at any place.
            Failure::usage(format!(
                "cannot use the Cosmos DB store: its URL {reason}; write cosmos://HOST/DATABASE/CONTAINER, and put the key of \
                 the account into COSMOS_KEY"
            ))
        })?;
        if !host.is_empty() {
            // The emulators of this machine have no certificate.
            let scheme = if is_this_machine(host) { "http" } else { "https" };
            config.endpoint = format!("{scheme}://{host}/");
        }
        // The emulator's key is published, and accounts elsewhere have another one.
        if !has_key && !config.endpoint.split("//").nth(1).is_some_and(is_this_machine) {
            return Err(Failure::usage(
                "cannot use the Cosmos DB store: COSMOS_KEY is not set; put the key of the account into it",
            ));
        }
        let mut names = names.into_iter();
        config.database = names.next().unwrap_or(config.database);
        let container = names.next();
        let names_container = container.is_some();
        config.container = container.unwrap_or(config.container);
        Ok(Self { config, names_container })
    }
}

/// The host of a URL, which may be empty, and the names of its path.
fn parts(url: &str) -> Result<(&str, Vec<String>), &'static str> {
    let rest = url.strip_prefix("cosmos:").unwrap_or(url);
    if rest.contains('@') {
        return Err("has a user or a key");
    }
    if rest.contains(['?', '#']) {
        return Err("has options");
    }
    let (host, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_once('/').unwrap_or((rest, "")),
        None if rest.is_empty() => ("", ""),
        None => return Err("has no host"),
    };
    let names = path.split('/').filter(|name| !name.is_empty()).map(decoded);
    match names.collect::<Option<Vec<_>>>() {
        Some(names) if names.len() <= 2 => Ok((host, names)),
        Some(_) => Err("has more than a database and a container"),
        None => Err("has an invalid escape"),
    }
}

/// Whether an address, `HOST`, `HOST:PORT` or `HOST:PORT/`, is of this machine.
fn is_this_machine(address: &str) -> bool {
    let host = address.split('/').next().unwrap_or_default();
    let host = match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => host,
    };
    host == "localhost"
        || host == "[::1]"
        || host.parse().is_ok_and(|ip: std::net::Ipv4Addr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> CosmosDBProviderConfig {
        CosmosDBProviderConfig {
            endpoint: "https://base.example/".to_string(),
            key: "s3cret".to_string(),
            database: "base-db".to_string(),
            ..CosmosDBProviderConfig::default()
        }
    }

    fn with(url: &str, has_key: bool) -> Result<Settings, Failure> {
        Settings::with(&StoreUrl::from(url.to_string()), base(), has_key)
    }

    #[test]
    fn urls_name_the_account_database_and_container() {
        for (url, endpoint, database, container, names_container) in [
            (
                "cosmos://a.documents.azure.com/shop/jobs",
                "https://a.documents.azure.com/",
                "shop",
                "jobs",
                true,
            ),
            ("cosmos://a.example:444/shop", "https://a.example:444/", "shop", "duroxide", false),
            ("cosmos://127.0.0.1:8081/s%20t/", "http://127.0.0.1:8081/", "s t", "duroxide", false),
            ("cosmos://[::1]:8081", "http://[::1]:8081/", "base-db", "duroxide", false),
            ("cosmos:///shop/jobs", "https://base.example/", "shop", "jobs", true),
            ("cosmos:", "https://base.example/", "base-db", "duroxide", false),
        ] {
            let settings = with(url, true).unwrap();
            let found = &settings.config;
            assert_eq!(
                (found.endpoint.as_str(), found.database.as_str(), found.container.as_str()),
                (endpoint, database, container),
                "{url}"
            );
            assert_eq!(settings.names_container, names_container, "{url}");
        }
    }

    #[test]
    fn refused_urls_are_not_shown() {
        for (url, part) in [
            ("cosmos://s3cret@a.example/shop", "has a user or a key"),
            ("cosmos://a.example/shop?key=s3cret", "has options"),
            ("cosmos:s3cret", "has no host"),
            ("cosmos://a.example/a/b/s3cret", "more than a database and a container"),
            ("cosmos://a.example/s3cret%zz", "an invalid escape"),
        ] {
            let message = with(url, true).unwrap_err().to_string();
            assert!(message.contains(part) && !message.contains("s3cret"), "{message}");
        }
    }

    #[test]
    fn only_this_machine_has_a_default_key() {
        assert!(with("cosmos://localhost:8081/shop", false).is_ok());
        for url in
            ["cosmos://a.example/shop", "cosmos:", "cosmos://localhost.example/shop", "cosmos://127.example/"]
        {
            let message = with(url, false).unwrap_err().to_string();
            assert!(message.contains("COSMOS_KEY is not set"), "{url}: {message}");
        }
    }
}
