//! Opening the store that `--store` or `OUTLAST_STORE` names.
//!
//! A kind of store is a module with a function `open`, and a row of [`Kind::of`].

#[cfg(feature = "cosmos")]
pub(crate) mod cosmos;
mod password;
pub(crate) mod postgres;
pub(crate) mod sqlite;
mod url;

use crate::failure::Failure;
use clap::Args as ClapArgs;
use outlast::client::Client;
use outlast::providers::{Provider, SchemaState};
use std::fmt;
use std::sync::Arc;
pub(crate) use url::{StoreUrl, hide_secrets};

/// The environment variable that names the store if `--store` is not given.
pub(crate) const VARIABLE: &str = "OUTLAST_STORE";

// Not documentation: clap would show it as that of the subcommand.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct StoreArgs {
    /// The store: a file, `sqlite:PATH`, `postgres://USER@HOST/DATABASE`, or `cosmos://HOST/DATABASE/CONTAINER`;
    /// $OUTLAST_STORE if not given
    ///
    /// Other users of this machine can read command lines: keep passwords out of them. Name the store in OUTLAST_STORE, or put
    /// the password into PGPASSWORD or the file that PGPASSFILE names. The key of a Cosmos DB account is in COSMOS_KEY.
    #[arg(long, value_name = "URL")]
    store: Option<StoreUrl>,
    /// The profile that names the store, see `outlast config show`; $OUTLAST_PROFILE if not given
    #[arg(long, value_name = "NAME", conflicts_with = "store")]
    profile: Option<String>,
    /// The schema of a PostgreSQL store; `public` if not given
    #[arg(long, value_name = "NAME")]
    schema: Option<String>,
}

/// The location of a store.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) url: StoreUrl,
    pub(crate) schema: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "schema '{schema}' of {}", self.url),
            None => self.url.fmt(f),
        }
    }
}

impl StoreArgs {
    /// The location from the command line, the environment or a profile.
    pub(crate) fn place(self) -> Result<Place, Failure> {
        match crate::config::chosen(self.store, self.profile, self.schema)? {
            Some((place, _)) => Ok(place),
            None => Err(Failure::usage(format!(
                "no store is named: give --store <URL>, or set {VARIABLE}. A URL is a file, sqlite:PATH, \
                 postgres://USER@HOST/DATABASE, or cosmos://HOST/DATABASE/CONTAINER"
            ))),
        }
    }
}

/// How the command uses the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intent {
    /// Reads only; opening writes nothing either.
    Read,
    /// Writes to a store that must exist.
    Write,
    /// Writes to a store, and creates it if it does not exist.
    Create,
}

/// The kinds of stores that this command supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
    Cosmos,
}

impl Kind {
    /// The kind of store that a URL names. A text without a scheme is a path.
    pub(crate) fn of(url: &StoreUrl) -> Result<Self, Failure> {
        let text = url.as_str();
        match text.split_once(':').map(|(scheme, rest)| (scheme, rest.starts_with("//"))) {
            Some(("sqlite", _)) => Ok(Self::Sqlite),
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres),
            Some(("cosmos", _)) => Ok(Self::Cosmos),
            // Only the scheme, because other parts may hold a password.
            Some((other, true)) => Err(Failure::new(format!(
                "cannot use the store: this command does not know '{other}' stores; write a path, sqlite:PATH, \
                 postgres://USER@HOST/DATABASE, or cosmos://HOST/DATABASE/CONTAINER"
            ))),
            // A connection string of libpq: as a path, it would be shown in messages with its password.
            _ if text.contains("password=") || text.contains("host=") => Err(Failure::new(
                "cannot use the store: it looks like key=value pairs; write postgres://USER@HOST/DATABASE",
            )),
            _ => Ok(Self::Sqlite),
        }
    }
}

/// A client of the store.
pub(crate) async fn open(place: &Place, intent: Intent) -> Result<Client, Failure> {
    Ok(Client::new(open_provider(place, intent).await?))
}

/// The store.
pub(crate) async fn open_provider(place: &Place, intent: Intent) -> Result<Arc<dyn Provider>, Failure> {
    let kind = Kind::of(&place.url)?;
    let others = match kind {
        // A file refuses a schema itself.
        Kind::Postgres | Kind::Sqlite => None,
        Kind::Cosmos => Some("the URL of a Cosmos DB store names the container"),
    };
    if let (Some(others), Some(_)) = (others, &place.schema) {
        return Err(Failure::usage(format!("--schema is for PostgreSQL stores: {others}")));
    }
    match kind {
        Kind::Sqlite => sqlite::open(place, intent).await,
        Kind::Postgres => postgres::open(place, intent).await,
        #[cfg(feature = "cosmos")]
        Kind::Cosmos => cosmos::open(&place.url, intent).await,
        #[cfg(not(feature = "cosmos"))]
        Kind::Cosmos => Err(without_cosmos()),
    }
}

/// The schema of an existing store. Writes nothing.
pub(crate) async fn schema_state(place: &Place) -> Result<SchemaState, Failure> {
    match Kind::of(&place.url)? {
        Kind::Sqlite => sqlite::schema_state(place),
        Kind::Postgres => postgres::schema_state(place).await,
        Kind::Cosmos => Err(Failure::new("a Cosmos DB store has no schema")),
    }
}

/// The schema of a store; `None` for a file that does not exist or is empty.
pub(crate) async fn schema_state_or_none(place: &Place) -> Result<Option<SchemaState>, Failure> {
    match Kind::of(&place.url)? {
        Kind::Sqlite if sqlite::is_absent(place)? => Ok(None),
        _ => schema_state(place).await.map(Some),
    }
}

/// The failure of a command that was built without the feature `cosmos`.
#[cfg(not(feature = "cosmos"))]
pub(crate) fn without_cosmos() -> Failure {
    Failure::new(
        "cannot use the store: this command was built without its feature `cosmos`; in a checkout, \
         `cargo install --path crates/cli --features cosmos` builds it with Cosmos DB",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_schemes_name_the_kind_of_store() {
        for (url, expected) in [
            ("shop.db", Kind::Sqlite),
            ("/var/lib/a:b.db", Kind::Sqlite),
            ("sqlite:shop.db", Kind::Sqlite),
            ("postgres://host/db", Kind::Postgres),
            ("postgresql://host/db", Kind::Postgres),
            ("postgres:me:s3cret@host", Kind::Postgres),
            ("cosmos://host/db", Kind::Cosmos),
            ("cosmos:", Kind::Cosmos),
        ] {
            assert_eq!(Kind::of(&StoreUrl::from(url.to_string())).unwrap(), expected, "{url}");
        }
    }

    #[cfg(not(feature = "cosmos"))]
    #[tokio::test]
    async fn without_the_feature_the_error_names_the_build() {
        let place = Place { url: StoreUrl::from("cosmos://host/db".to_string()), schema: None };
        let message = open(&place, Intent::Read).await.map(drop).unwrap_err().to_string();
        assert!(message.contains("feature `cosmos`"), "{message}");
        assert!(message.contains("cargo install --path crates/cli --features cosmos"), "{message}");
    }

    #[test]
    fn refused_urls_are_not_shown() {
        for (url, part) in [
            ("mysql://me:s3cret@host/db", "'mysql' stores"),
            ("host=h user=me password=s3cret", "key=value pairs"),
        ] {
            let message = Kind::of(&StoreUrl::from(url.to_string())).unwrap_err().to_string();
            assert!(message.contains(part) && !message.contains("s3cret"), "{message}");
        }
    }
}
