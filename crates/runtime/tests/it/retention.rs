//! Retention by a client and by a runtime, on the memory store.

use outlast_engine::OrchestrationContext;
use outlast_memory::MemoryProvider;
use outlast_provider::{Clock, Interest, Provider, SystemClock};
use outlast_runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use outlast_runtime::{Client, ClientError, Keep, Retention, Runtime, RuntimeOptions};
use std::sync::Arc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

async fn hello(_: OrchestrationContext, _: String) -> Result<String, String> {
    Ok("done".to_string())
}

async fn fails(_: OrchestrationContext, _: String) -> Result<String, String> {
    Err("broken".to_string())
}

async fn waits(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    Ok(ctx.schedule_wait("go").await)
}

async fn parent(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.schedule_sub_orchestration("Hello", "").await
}

async fn start(options: RuntimeOptions) -> (Arc<Runtime>, Client, Arc<MemoryProvider>) {
    let store = Arc::new(MemoryProvider::new());
    let orchestrations = OrchestrationRegistry::builder()
        .register("Hello", hello)
        .register("Fails", fails)
        .register("Waits", waits)
        .register("Parent", parent)
        .build();
    let activities = ActivityRegistry::builder().build();
    let provider = Arc::clone(&store) as Arc<dyn Provider>;
    let client = Client::new(Arc::clone(&provider));
    let runtime = Runtime::start_with_options(provider, activities, orchestrations, options).await;
    (runtime, client, store)
}

async fn ended(client: &Client, instance: &str, orchestration: &str) {
    client.start_orchestration(instance, orchestration, "").await.unwrap();
    client.wait_for_orchestration(instance, LONG).await.unwrap();
}

async fn left(client: &Client) -> Vec<String> {
    let mut ids = client.list_all_instances().await.unwrap();
    ids.sort();
    ids
}

fn later(age: Duration) -> u64 {
    SystemClock.now_ms() + u64::try_from(age.as_millis()).unwrap() + 1_000
}

#[tokio::test]
async fn ages_apply_by_status_and_orchestration_and_a_pass_is_recorded_once() {
    let (runtime, client, _) = start(RuntimeOptions::default()).await;
    for (instance, orchestration) in [("h", "Hello"), ("f", "Fails"), ("p", "Parent")] {
        ended(&client, instance, orchestration).await;
    }
    client.start_orchestration("w", "Waits", "").await.unwrap();
    let policy = Retention { completed_for: Some(DAY), failed_for: Some(3 * DAY), ..Retention::default() };
    let own = |keep| Retention { orchestrations: [("Hello".to_string(), keep)].into(), ..policy.clone() };

    let young = client.apply_retention(&policy, SystemClock.now_ms(), "test").await.unwrap();
    assert_eq!((young.matched, young.has_deleted()), (0, false), "{young:?}");
    let now = later(DAY);
    let kept = client.preview_retention(&own(Keep::Always), now).await.unwrap();
    assert_eq!((kept.matched, kept.instances), (1, 0), "the parent: {kept:?}");
    let longer = client.preview_retention(&own(Keep::For(2 * DAY)), now).await.unwrap();
    assert_eq!(longer.matched, 1, "{longer:?}");
    let shorter = client.preview_retention(&own(Keep::For(DAY / 2)), later(DAY / 2)).await.unwrap();
    assert_eq!(shorter.matched, 1, "the root Hello; its namesake is a child: {shorter:?}");
    assert_eq!(left(&client).await.len(), 5, "a preview deletes nothing");

    let done = client.apply_retention(&policy, now, "test").await.unwrap();
    assert_eq!((done.matched, done.instances, done.executions), (2, 3, 3), "{done:?}");
    assert_eq!(left(&client).await, ["f", "w"], "failed instances are kept longer");
    let again = client.apply_retention(&policy, now, "test").await.unwrap();
    assert!(!again.has_deleted(), "{again:?}");
    let done = client.apply_retention(&policy, later(3 * DAY), "test").await.unwrap();
    assert_eq!((done.instances, left(&client).await), (1, vec!["w".to_string()]), "{done:?}");
    let audit = client.audit_page(None, 10).await.unwrap().unwrap();
    let results: Vec<&str> = audit.iter().map(|record| record.entry.result.as_str()).collect();
    let expected = [
        "deleted 1 instances, 0 records of the audit, 0 dead letters",
        "deleted 3 instances, 0 records of the audit, 0 dead letters",
    ];
    assert_eq!(results, expected, "a pass without deletions is not recorded");
    assert_eq!(audit[0].entry.reason, "kept for: completed 86400s, failed 259200s");
    let policy = Retention { audit_for: Some(DAY), ..Retention::default() };
    let old = client.preview_retention(&policy, later(DAY)).await.unwrap();
    assert_eq!(old.audit_records, 1, "the newest record stays: {old:?}");
    assert_eq!(client.apply_retention(&policy, later(DAY), "test").await.unwrap().audit_records, 1);
    runtime.shutdown(None).await;
}

#[tokio::test]
async fn pass_examines_one_page_of_young_instances() {
    let (runtime, client, _) = start(RuntimeOptions::default()).await;
    for n in 0..1_200 {
        ended(&client, &format!("h{n}"), "Hello").await;
    }
    let policy = Retention::ended_for(DAY);
    let young = client.apply_retention(&policy, SystemClock.now_ms(), "test").await.unwrap();
    assert_eq!((young.examined, young.instances), (500, 0), "{young:?}");
    let old =
        client.apply_retention(&Retention { load_percent: 100, ..policy }, later(DAY), "test").await.unwrap();
    assert_eq!((old.examined, old.instances), (1_200, 1_200), "{old:?}");
    runtime.shutdown(None).await;
}

#[tokio::test(start_paused = true)]
async fn runtime_with_the_option_deletes_by_itself_and_stops_with_its_pass() {
    let retention = Some(Retention { every: LONG, ..Retention::ended_for(Duration::ZERO) });
    let (runtime, client, store) = start(RuntimeOptions { retention, ..RuntimeOptions::default() }).await;
    client.start_orchestration("w", "Waits", "").await.unwrap();
    for n in 0..3 {
        let id = format!("h{n}");
        ended(&client, &id, "Hello").await;
        // An instance that is deleted before the watch begins is found below.
        let watch = store.watch_instance(&id, Interest::Any).unwrap();
        if left(&client).await.contains(&id) {
            tokio::time::timeout(1_000 * LONG, watch).await.unwrap();
        }
    }
    assert_eq!(left(&client).await, ["w"]);
    let record = client.audit_page(None, 1).await.unwrap().unwrap().remove(0).entry;
    assert!(record.actor.starts_with("retention of ") && record.action == "retention.run", "{record:?}");
    runtime.shutdown(None).await;
}

#[tokio::test]
async fn impossible_policies_are_refused() {
    let (runtime, client, _) = start(RuntimeOptions::default()).await;
    for policy in [
        Retention { batch: 0, ..Retention::default() },
        Retention { load_percent: 0, ..Retention::default() },
        Retention { load_percent: 101, ..Retention::default() },
        Retention { every: Duration::ZERO, ..Retention::default() },
    ] {
        let refused = client.apply_retention(&policy, 0, "test").await;
        assert!(matches!(refused, Err(ClientError::InvalidInput { .. })), "{refused:?}");
        let options = RuntimeOptions { retention: Some(policy), ..RuntimeOptions::default() };
        let problems = options.validate().unwrap_err();
        assert_eq!(problems.iter().map(|problem| problem.option).collect::<Vec<_>>(), ["retention"]);
    }
    runtime.shutdown(None).await;
}
