//! The command on Cosmos DB: on a rig, or on the account that `COSMOS_ENDPOINT` and `COSMOS_KEY` name.

use crate::check;
use crate::program::{LONG, Program};
use crate::support::{Said, outlast, said};
use outlast::providers::cosmos::{
    CosmosDBOptions, CosmosDBProvider, CosmosDBProviderConfig, CosmosStoreError,
};
use outlast::providers::{Entropy, OsEntropy, Provider};
use outlast::runtime::OrchestrationStatus;
use outlast_cosmos_rig::{AUTHORITY, READ_ONLY_KEY, Rig, RigOptions, Target, target};
use std::sync::Arc;

const DATABASE: &str = "outlast-test";

/// A container that no other test has.
struct Container {
    target: Target,
    config: CosmosDBProviderConfig,
}

/// Deletes a container, if a test created it.
async fn remove(config: CosmosDBProviderConfig) {
    let options = CosmosDBOptions { creates: false, ..CosmosDBOptions::default() };
    match CosmosDBProvider::open(config.clone(), options).await {
        Ok(store) => store.cleanup().await.expect("the container of a test is deleted"),
        Err(CosmosStoreError::Missing { .. }) => {}
        Err(error) => panic!("the container '{}' of a test is left: {error}", config.container),
    }
}

impl Container {
    async fn fresh() -> Self {
        let target = target().await.unwrap();
        let config = CosmosDBProviderConfig {
            endpoint: target.endpoint().to_string(),
            key: target.key().to_string(),
            database: DATABASE.to_string(),
            container: format!("cli{:032x}", OsEntropy.next_u128()),
            ..CosmosDBProviderConfig::default()
        };
        target.at_end(remove(config.clone()));
        Self { target, config }
    }

    async fn open(&self) -> Arc<dyn Provider> {
        Arc::new(CosmosDBProvider::new_with_config(self.config.clone()).await.unwrap())
    }

    /// The URL of the container, without the key.
    fn url(&self) -> String {
        format!("{}/{}/{}", self.host(), DATABASE, self.config.container)
    }

    fn host(&self) -> String {
        let (_, host) = self.config.endpoint.split_once("//").unwrap();
        format!("cosmos://{}", host.trim_end_matches('/'))
    }

    /// Runs the command with the key of the account.
    fn run(&self, args: &[&str]) -> Said {
        self.run_with_key(self.target.key(), args)
    }

    fn run_with_key(&self, key: &str, args: &[&str]) -> Said {
        said(outlast(args).env("COSMOS_KEY", key).output().unwrap())
    }

    fn ask(&self, args: &[&str]) -> Said {
        let url = self.url();
        self.run(&[&["instance"], args, &["--store", &url]].concat())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_subcommand_works_on_cosmos() {
    let container = Container::fresh().await;
    Program::on(container.open().await).await.fill_and_stop().await;

    let listed = container.ask(&["list", "--status", "Running", "-o", "json"]).json();
    assert_eq!(listed["instances"][0]["instance"], "parked-1");
    let first = container.ask(&["list", "--limit", "4", "-o", "json"]).json();
    assert_eq!(first["instances"].as_array().unwrap().len(), 4);
    let next = first["next"].as_str().unwrap();
    let rest = container.ask(&["list", "--limit", "4", "--after", next, "-o", "json"]).json();
    assert_eq!(rest["instances"].as_array().unwrap().len(), 2);
    let shown = container.ask(&["show", "hello-1", "-o", "json"]).json();
    assert_eq!((&shown["status"], &shown["kv"]["colour"]), (&"Completed".into(), &"blue".into()));
    assert_eq!(shown["descendants"][0]["orchestration"], "Leaf");
    assert!(container.ask(&["history", "hello-1"]).fine().contains("OrchestrationCompleted"));
    assert!(container.ask(&["timeline", "hello-1"]).fine().contains("Say"));
    assert!(container.ask(&["why", "parked-1"]).fine().contains("for event 'go'"));
    let diff = container.ask(&["diff", "hello-1", "hello-2", "-o", "json"]).json();
    assert!(diff["first_difference"].is_null(), "{diff}");

    let said = container.ask(&["show", "nobody"]).not_found();
    assert!(said.contains(&container.url()), "{said}");
    container.ask(&["enqueue", "parked-1", "orders", "one"]).fine();
    container.ask(&["signal", "parked-1", "go", "on"]).fine();
    let program = Program::on(container.open().await).await;
    let ended = program.client.wait_for_orchestration("parked-1", LONG).await.unwrap();
    assert!(
        matches!(ended, OrchestrationStatus::Completed { ref output, .. } if output == "on"),
        "{ended:?}"
    );
    program.park("parked-2", "1.0.0").await;
    container.ask(&["cancel", "parked-2", "--reason", "enough"]).fine();
    let ended = program.client.wait_for_orchestration("parked-2", LONG).await.unwrap();
    assert!(matches!(ended, OrchestrationStatus::Failed { .. }), "{ended:?}");
    program.runtime.shutdown(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_checks_a_container() {
    let container = Container::fresh().await;
    Program::on(container.open().await).await.fill_and_stop().await;
    let report = container.run(&["doctor", "--store", &container.url(), "-o", "json"]).json();
    let checks = report["checks"].as_array().unwrap();
    let names: Vec<&str> = checks.iter().map(|check| check["check"].as_str().unwrap()).collect();
    for name in ["container", "schema", "nodes", "clocks", "dead_letters"] {
        assert!(names.contains(&name), "{name} in {report}");
    }
    assert!(checks.iter().all(|check| check["findings"] == serde_json::json!([])), "{report}");
    let fix = container.run(&["doctor", "--store", &container.url(), "--fix"]);
    assert!(fix.code == Some(2) && fix.err.contains("--fix is for SQLite stores"), "{fix:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_names_the_account() {
    let container = Container::fresh().await;
    Program::on(container.open().await).await.fill_and_stop().await;
    let list = |store: &str| {
        let mut command = outlast(["instance", "list", "--prefix", "parked", "-o", "json"]);
        command.env("OUTLAST_STORE", store).env("COSMOS_KEY", container.target.key());
        command.env("COSMOS_ENDPOINT", container.target.endpoint());
        said(command.output().unwrap())
    };
    let listed = list(&format!("cosmos:///{DATABASE}/{}", container.config.container)).json();
    assert_eq!(listed["instances"][0]["instance"], "parked-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_cannot_be_used_is_refused_without_secrets() {
    let container = Container::fresh().await;
    let list = |key: &str, store: &str| container.run_with_key(key, &["instance", "list", "--store", store]);
    let url = container.url();
    let error = list(container.target.key(), &url).failed();
    assert!(error.contains(&format!("there is no container '{DATABASE}/")), "{error}");

    container.open().await;
    // A list writes nothing: a key that only reads suffices.
    if container.target.rig().is_some() {
        assert_eq!(list(READ_ONLY_KEY, &url).fine(), "No instance matches.\n");
    }
    let wrong = "d3Jvbmctd3Jvbmctd3Jvbmctd3Jvbmctd3Jvbmctd3Jvbmctd3Jvbmctd3Jvbmctd3Jvbmctd3Jvbmctd3Jvbg==";
    for (key, store, code, part) in [
        (wrong, url.as_str(), 1, "the account refuses reading the account (status 401)"),
        ("", "cosmos://a.documents.azure.com/shop", 2, "COSMOS_KEY is not set"),
        (wrong, &format!("cosmos://{wrong}@a.documents.azure.com/shop"), 2, "its URL has a user or a key"),
    ] {
        let said = list(key, store);
        assert_eq!(said.code, Some(code), "{said:?}");
        assert!(said.err.contains(part) && !said.err.contains(wrong), "{}", said.err);
    }
    let said = container.run(&["instance", "list", "--store", &url, "--schema", "shop"]);
    assert!(said.code == Some(2) && said.err.contains("names the container"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stress_uses_a_container_of_its_own() {
    let container = Container::fresh().await;
    let store = format!("{}/{DATABASE}", container.host());
    let table = container.run(&["stress", "--store", &store, "--seconds", "1"]).fine();
    assert!(table.contains("cosmos") && table.contains("default 2/2"), "{table}");

    let program = Program::on(container.open().await).await;
    program.run("hello-1", "Greeting").await;
    program.runtime.shutdown(None).await;
    let error = container.run(&["stress", "--store", &container.url(), "--seconds", "1"]).failed();
    assert!(error.contains("holds instances") && error.contains("--use-existing-data"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_behind_tls_is_opened_if_its_authority_is_trusted() {
    let rig = Rig::start_with(RigOptions { tls: true, ..RigOptions::default() }).await.unwrap();
    let target = Target::Rig(Box::new(rig));
    assert!(target.endpoint().starts_with("https://"));
    let folder = tempfile::tempdir().unwrap();
    let authority = folder.path().join("authority.pem");
    std::fs::write(&authority, AUTHORITY).unwrap();
    let list = |file: &std::path::Path| {
        let mut command = outlast(["instance", "list", "--store", "cosmos:///no-such-database"]);
        command.env("COSMOS_ENDPOINT", target.endpoint()).env("COSMOS_KEY", target.key());
        said(command.env("SSL_CERT_FILE", file).env_remove("SSL_CERT_DIR").output().unwrap())
    };
    let answered = list(&authority);
    assert!(answered.code == Some(1) && answered.err.contains("no-such-database"), "{answered:?}");
    let without = list(&folder.path().join("absent.pem"));
    assert!(without.code == Some(1) && without.err.contains("no certificates of authorities"), "{without:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_are_checked_on_cosmos() {
    let container = Container::fresh().await;
    check::fill(container.open().await, 2).await;
    let url = container.url();
    let check = |version: &str| {
        let mut command = check::command(version, &["--store", &url, "-o", "json"]);
        said(command.env("COSMOS_KEY", container.target.key()).output().unwrap())
    };
    let safe = check("patched").json();
    assert_eq!((&safe["checked"], &safe["patches"]["fraud"]["older"]), (&3.into(), &2.into()));
    let broken = check::breaks(check("unpatched"));
    assert!(broken.contains("\"diverging\": 2"), "{broken}");
}
