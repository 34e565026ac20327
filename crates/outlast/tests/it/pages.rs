//! The programs of the pages about stores, operation and logs. The pages show the lines between the marks; that they compile is the
//! test.
#![expect(dead_code, reason = "the programs need servers and a signal")]

use outlast::prelude::*;
use outlast::runtime::{Keep, Retention};
use outlast::{Client, RuntimeOptions};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

type Done = Result<(), Box<dyn Error + Send + Sync>>;

#[derive(Clone)]
struct Gateway;

#[outlast::activity]
async fn charge(_ctx: ActivityContext, cents: u64) -> Result<String, String> {
    Ok(format!("{cents} cents"))
}

#[outlast::orchestration]
async fn fulfil(ctx: OrchestrationContext, cents: u64) -> Result<String, String> {
    Ok(charge::call(&ctx, cents).await?)
}

async fn operations(gateway: Gateway) -> Done {
    use outlast::providers::sqlite::SqliteProvider;
    // guide: runtime
    let runtime = Runtime::builder()
        .store(Arc::new(SqliteProvider::new("sqlite:orders.db", None).await?))
        .register(outlast::module![charge, fulfil])
        .state(gateway)
        .options(RuntimeOptions {
            worker_concurrency: 64,
            orchestration_concurrency: 16,
            ..Default::default()
        })
        .start()
        .await?;
    // guide: end
    // guide: drain
    runtime.run_until_signal(Duration::from_secs(25)).await?;
    // guide: end
    Ok(())
}

fn retention() -> RuntimeOptions {
    // guide: retention
    let retention = Retention {
        completed_for: Some(Duration::from_secs(30 * 86_400)),
        failed_for: Some(Duration::from_secs(90 * 86_400)),
        orchestrations: [("Invoice".to_string(), Keep::Always)].into(),
        audit_for: Some(Duration::from_secs(365 * 86_400)),
        ..Retention::default()
    };
    let options = RuntimeOptions { retention: Some(retention), ..RuntimeOptions::default() };
    // guide: end
    options
}

async fn sqlite() -> Done {
    // guide: sqlite
    use outlast::providers::sqlite::{SqliteOptions, SqliteProvider};

    let store = SqliteProvider::new("sqlite:orders.db", None).await?;
    let tuned = SqliteOptions { reader_connections: 4, ..SqliteOptions::default() };
    let other = SqliteProvider::new("sqlite:/var/lib/app/jobs.db?mode=rw", Some(tuned)).await?;
    // guide: end
    drop(other);
    // guide: backup
    store.backup_to("backups/orders-monday.db").await?;
    // guide: end
    Ok(())
}

async fn postgres() -> Done {
    // guide: postgres
    use outlast::providers::postgres::{PostgresProvider, ProviderConfig};
    use std::sync::Arc;

    let store =
        PostgresProvider::new("postgres://me:password@db.example.com/orders?sslmode=verify-full").await?;
    // Or, with a schema of its own and settings:
    let config =
        ProviderConfig::url("postgres://me:password@db.example.com/orders").schema("outlast").pool_size(20);
    let configured = Arc::new(PostgresProvider::new_with_config(config).await?);
    // guide: end
    drop((store, configured));
    Ok(())
}

async fn fetch_token() -> Result<String, std::io::Error> {
    std::fs::read_to_string("token")
}

fn passwords() -> outlast::providers::postgres::ProviderConfig {
    use outlast::providers::postgres::ProviderConfig;
    // guide: password
    let config = ProviderConfig::url("postgres://me@db.example.com/orders?sslmode=verify-full")
        .password_with(|| async { Ok(fetch_token().await?) });
    // guide: end
    config
}

async fn cosmos() -> Done {
    // guide: cosmos
    use outlast::providers::cosmos::{CosmosDBProvider, CosmosDBProviderConfig};

    let store = CosmosDBProvider::new_with_config(CosmosDBProviderConfig {
        endpoint: "https://name.documents.azure.com".into(),
        key: std::env::var("COSMOS_KEY")?,
        ..CosmosDBProviderConfig::default()
    })
    .await?;
    // guide: end
    drop(store);
    Ok(())
}

fn logs() -> Done {
    // guide: logs
    use outlast::runtime::observability::{LogFormat, ObservabilityConfig, init_logging};

    let config = ObservabilityConfig { log_format: LogFormat::Json, ..ObservabilityConfig::default() };
    init_logging(&config)?;
    // guide: end
    Ok(())
}

async fn traceparent(client: Client, header: &str) -> Done {
    // guide: traceparent
    let receipt = client.start_request("Order").instance("order-1").traceparent(header).send().await?;
    fulfil::start(&client, 700).id("order-2").traceparent(header).await?;
    // guide: end
    drop(receipt);
    Ok(())
}
