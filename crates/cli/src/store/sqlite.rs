//! SQLite stores: a path, or `sqlite:PATH`.

use super::{Intent, Place, StoreUrl};
use crate::failure::Failure;
use outlast::providers::sqlite::{LockPatience, SqliteError, SqliteOptions, SqliteProvider};
use outlast::providers::{MigrationRefusal, Provider, SchemaState};
use std::path::PathBuf;
use std::sync::Arc;

pub(super) async fn open(place: &Place, intent: Intent) -> Result<Arc<dyn Provider>, Failure> {
    Ok(Arc::new(open_file(place, intent).await?))
}

/// The store with the calls that only SQLite files have.
pub(crate) async fn open_file(place: &Place, intent: Intent) -> Result<SqliteProvider, Failure> {
    if intent == Intent::Write
        && let SchemaState { applied: found, known, .. } = schema_state(place)?
        && found < known
    {
        // Opening would migrate: a command of another release must not change the schema under the programs that use it.
        let (path, refusal) = (path(&place.url)?, MigrationRefusal::Older { found, known });
        return Err(failure(&SqliteError::Schema { path, refusal }));
    }
    check_place(place)?;
    let mode = match intent {
        Intent::Read => "ro",
        Intent::Write => "rw",
        Intent::Create => "rwc",
    };
    // A user waits for the command.
    let options = SqliteOptions { lock_patience: LockPatience::FiveSeconds, ..SqliteOptions::default() };
    SqliteProvider::new(&with_mode(&place.url, mode)?, Some(options)).await.map_err(|error| failure(&error))
}

fn check_place(place: &Place) -> Result<(), Failure> {
    match place.schema {
        Some(_) => Err(Failure::usage("--schema is for PostgreSQL stores: a SQLite store is a file")),
        None => Ok(()),
    }
}

/// The schema of an existing store. Writes nothing.
pub(super) fn schema_state(place: &Place) -> Result<SchemaState, Failure> {
    check_place(place)?;
    SqliteProvider::schema_state(&with_mode(&place.url, "ro")?).map_err(|error| failure(&error))
}

/// Whether the file does not exist or is empty, so that a store can be created there.
pub(super) fn is_absent(place: &Place) -> Result<bool, Failure> {
    check_place(place)?;
    Ok(path(&place.url)?.metadata().map_or(true, |file| file.len() == 0))
}

/// A locked file, and one of a newer release, are told apart from other errors.
fn failure(error: &SqliteError) -> Failure {
    match error {
        SqliteError::CannotOpen { path, .. } if !path.exists() => {
            Failure::new(format!("there is no store at '{}': check the path after --store", path.display()))
        }
        SqliteError::Busy { .. } | SqliteError::Schema { refusal: MigrationRefusal::Newer { .. }, .. } => {
            Failure::unavailable(error.to_string())
        }
        other => Failure::new(other.to_string()),
    }
}

/// The file that a URL or path of the user names.
pub(crate) fn path(url: &StoreUrl) -> Result<PathBuf, Failure> {
    let url = with_mode(url, "ro")?;
    let path = url.strip_prefix("sqlite:").unwrap_or(&url);
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    let path = path.strip_prefix("//").unwrap_or(path);
    Ok(PathBuf::from(path.replace("%3F", "?").replace("%25", "%")))
}

/// The provider's URL for a URL or path of the user. The command decides how the store is opened.
pub(crate) fn with_mode(url: &StoreUrl, mode: &str) -> Result<String, Failure> {
    let Some(rest) = url.as_str().strip_prefix("sqlite:") else {
        // A path may hold characters with a meaning in URLs.
        let path = url.as_str().replace('%', "%25").replace('?', "%3F");
        return Ok(format!("sqlite://{path}?mode={mode}"));
    };
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let options: Vec<&str> = query.split('&').filter(|option| !option.is_empty()).collect();
    if path.trim_start_matches('/') == ":memory:" || options.contains(&"mode=memory") {
        return Err(Failure::new(format!(
            "cannot use the store 'sqlite:{path}': a store in memory is seen by its own process only; name a file"
        )));
    }
    let mode = format!("mode={mode}");
    let kept = options.into_iter().filter(|option| !option.starts_with("mode="));
    let options: Vec<&str> = kept.chain([mode.as_str()]).collect();
    Ok(format!("sqlite:{path}?{}", options.join("&")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast::client::ClientError;
    use outlast::providers::ProviderError;

    fn url(text: &str) -> StoreUrl {
        StoreUrl::from(text.to_string())
    }

    #[test]
    fn paths_and_urls_are_understood() {
        for (store, expected) in [
            ("shop.db", "sqlite://shop.db?mode=ro"),
            ("/var/50%?.db", "sqlite:///var/50%25%3F.db?mode=ro"),
            ("sqlite:shop.db", "sqlite:shop.db?mode=ro"),
            ("sqlite:///var/a.db?mode=rwc&cache=shared", "sqlite:///var/a.db?cache=shared&mode=ro"),
        ] {
            assert_eq!(with_mode(&url(store), "ro").unwrap(), expected);
        }
        assert_eq!(with_mode(&url("a.db"), "rw").unwrap(), "sqlite://a.db?mode=rw");
    }

    #[test]
    fn locked_stores_have_exit_status_7_when_opened_and_when_used() {
        let busy = SqliteError::Busy { details: "locked".to_string() };
        assert_eq!(failure(&busy).code(), 7);
        let retryable = ProviderError::retryable("op", "the store is busy");
        assert_eq!(Failure::from(retryable.clone()).code(), 7);
        assert_eq!(Failure::from(ClientError::Provider(retryable)).code(), 7);
        let damaged = SqliteError::Damaged { details: "a page".to_string() };
        assert_eq!(failure(&damaged).code(), 1);
        assert_eq!(Failure::from(ProviderError::permanent("op", "no")).code(), 1);
    }

    #[test]
    fn path_of_a_url_is_the_file() {
        for (store, expected) in [
            ("shop.db", "shop.db"),
            ("/var/50%?.db", "/var/50%?.db"),
            ("sqlite:shop.db", "shop.db"),
            ("sqlite:///var/a.db?mode=rwc", "/var/a.db"),
        ] {
            assert_eq!(path(&url(store)).unwrap(), PathBuf::from(expected));
        }
    }

    #[test]
    fn stores_in_memory_are_rejected() {
        for store in ["sqlite::memory:", "sqlite:x?mode=memory&key=s3cret"] {
            let message = with_mode(&url(store), "ro").unwrap_err().to_string();
            assert!(message.contains("in memory") && !message.contains("s3cret"), "{message}");
        }
    }
}
