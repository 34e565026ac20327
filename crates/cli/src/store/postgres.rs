//! PostgreSQL stores: `postgres://USER@HOST/DATABASE`.

use super::{Intent, Place, password};
use crate::failure::Failure;
use outlast::providers::postgres::{MigrationPolicy, PostgresError, PostgresProvider, ProviderConfig};
use outlast::providers::{MigrationRefusal, Provider, SchemaState};
use std::sync::Arc;
use std::time::Duration;

/// The connect timeout: a user waits for it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens a store. Only [`Intent::Create`] migrates it: a command of another release must not change the schema under the programs that
/// use it.
pub(super) async fn open(place: &Place, intent: Intent) -> Result<Arc<dyn Provider>, Failure> {
    Ok(Arc::new(open_server(place, intent).await?))
}

/// [`open`] with the calls that only this store has.
pub(crate) async fn open_server(place: &Place, intent: Intent) -> Result<PostgresProvider, Failure> {
    let migrations = match intent {
        Intent::Create => MigrationPolicy::ApplyAll,
        Intent::Read | Intent::Write => MigrationPolicy::VerifyOnly,
    };
    // The command waits for no commits, so it does not listen for notifications.
    let config = config(place)?.migrations(migrations).pool_size(2).listen(false);
    connect(config).await
}

/// The schema of a store, with version 0 if there is none. Writes nothing.
pub(super) async fn schema_state(place: &Place) -> Result<SchemaState, Failure> {
    PostgresProvider::schema_state(config(place)?.pool_size(2)).await.map_err(|error| failure(&error))
}

/// The settings that all commands share.
pub(crate) fn config(place: &Place) -> Result<ProviderConfig, Failure> {
    let url = password::complete(place.url.as_str())?;
    let mut config = ProviderConfig::url(url).application_name("outlast-cli");
    config.schema_name = place.schema.clone();
    config.acquire_timeout = CONNECT_TIMEOUT;
    Ok(config)
}

pub(crate) async fn connect(config: ProviderConfig) -> Result<PostgresProvider, Failure> {
    PostgresProvider::new_with_config(config).await.map_err(|error| failure(&error))
}

/// A server that cannot be reached, and a schema of a newer release, are told apart from other errors.
pub(crate) fn failure(error: &PostgresError) -> Failure {
    match error {
        PostgresError::Schema { refusal: MigrationRefusal::Newer { .. }, .. } => {
            Failure::unavailable(error.to_string())
        }
        _ if error.is_retryable() => Failure::unavailable(error.to_string()),
        _ => Failure::new(error.to_string()),
    }
}
