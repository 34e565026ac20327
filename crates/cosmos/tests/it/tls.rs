//! An account behind TLS, as Azure's accounts are.

use crate::factory::fresh_config;
use crate::script;
use outlast_cosmos::CosmosDBProvider;
use outlast_cosmos_rig::{AUTHORITY, Rig, RigOptions, Target};
use std::process::Command;

async fn secure_rig() -> Target {
    let options = RigOptions { tls: true, ..RigOptions::default() };
    Target::Rig(Box::new(Rig::start_with(options).await.unwrap()))
}

/// Set in the process whose machine trusts the authority of the rig.
const TRUSTS: &str = "OUTLAST_TEST_TRUSTS_RIG";

#[test]
fn an_https_endpoint_works_without_further_settings() {
    let folder = tempfile::tempdir().unwrap();
    let authority = folder.path().join("authority.pem");
    std::fs::write(&authority, AUTHORITY).unwrap();
    let program = std::env::current_exe().unwrap();
    let arguments = ["--exact", "tls::an_instance_runs_where_the_authority_is_trusted", "--nocapture"];
    let mut child = Command::new(program);
    child.args(arguments).env("SSL_CERT_FILE", &authority).env_remove("SSL_CERT_DIR").env(TRUSTS, "1");
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}\n{output:?}");
}

/// Runs in the child of the test above; elsewhere the machine does not trust the authority.
#[tokio::test]
async fn an_instance_runs_where_the_authority_is_trusted() {
    if std::env::var(TRUSTS).is_err() {
        return;
    }
    let target = secure_rig().await;
    let config = fresh_config(&target);
    assert!(config.endpoint.starts_with("https://"), "{config:?}");
    let store = CosmosDBProvider::new_with_config(config).await.unwrap();
    script::begin(&store).await;
    script::finish(&store).await;
    script::check(&store).await;
    assert!(target.rig().unwrap().recorded().iter().any(|record| record.http == 2), "HTTP/2 is negotiated");
}
