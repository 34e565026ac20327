//! Opening the store that `--store` names.

use crate::failure::Failure;
use outlast::client::Client;
use outlast::providers::sqlite::{SqliteError, SqliteProvider};
use std::sync::Arc;

/// What the command will do with the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intent {
    /// Nothing is written, not even by opening it.
    Read,
    /// Something is written, to a store that must exist.
    Write,
}

/// A client of the store.
pub(crate) async fn open(store: &str, intent: Intent) -> Result<Client, Failure> {
    let provider = SqliteProvider::new(&url(store, intent)?, None).await.map_err(|error| match error {
        SqliteError::CannotOpen { path, .. } if !path.exists() => {
            Failure::new(format!("there is no store at '{}': check the path after --store", path.display()))
        }
        other => Failure::new(other.to_string()),
    })?;
    Ok(Client::new(Arc::new(provider)))
}

/// The provider's URL for what a person wrote: a URL, or simply a path.
fn url(store: &str, intent: Intent) -> Result<String, Failure> {
    let mode = match intent {
        Intent::Read => "mode=ro",
        Intent::Write => "mode=rw",
    };
    let Some(rest) = store.strip_prefix("sqlite:") else {
        // Without the URL, which may hold a password.
        if let Some((kind, _)) = store.split_once("://") {
            return Err(Failure::new(format!(
                "cannot use the store: this command does not know '{kind}' stores; write a path or 'sqlite:PATH'"
            )));
        }
        // A path may hold what a URL gives a meaning to.
        return Ok(format!("sqlite://{}?{mode}", store.replace('%', "%25").replace('?', "%3F")));
    };
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let options: Vec<&str> = query.split('&').filter(|option| !option.is_empty()).collect();
    if path.trim_start_matches('/') == ":memory:" || options.contains(&"mode=memory") {
        return Err(Failure::new(format!(
            "cannot use the store 'sqlite:{path}': a store in memory is seen by its own process only; name a file"
        )));
    }
    // How the store is opened is the command's choice, not the URL's.
    let kept = options.into_iter().filter(|option| !option.starts_with("mode="));
    let options: Vec<&str> = kept.chain([mode]).collect();
    Ok(format!("sqlite:{path}?{}", options.join("&")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_urls_are_understood() {
        for (store, expected) in [
            ("shop.db", "sqlite://shop.db?mode=ro"),
            ("/var/50%?.db", "sqlite:///var/50%25%3F.db?mode=ro"),
            ("sqlite:shop.db", "sqlite:shop.db?mode=ro"),
            ("sqlite:///var/a.db?mode=rwc&cache=shared", "sqlite:///var/a.db?cache=shared&mode=ro"),
        ] {
            assert_eq!(url(store, Intent::Read).unwrap(), expected);
        }
        assert_eq!(url("a.db", Intent::Write).unwrap(), "sqlite://a.db?mode=rw");
    }

    #[test]
    fn stores_that_cannot_be_opened_are_refused_with_a_reason() {
        for (store, part) in [
            ("postgres://me:s3cret@host/db", "'postgres' stores"),
            ("sqlite::memory:", "in memory"),
            ("sqlite:x?mode=memory&key=s3cret", "in memory"),
        ] {
            let message = url(store, Intent::Read).unwrap_err().to_string();
            assert!(message.contains(part) && !message.contains("s3cret"), "{message}");
        }
    }
}
