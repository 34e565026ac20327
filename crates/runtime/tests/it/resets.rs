//! Reset and fork, on the memory store.

use outlast_engine::OrchestrationContext;
use outlast_memory::MemoryProvider;
use outlast_model::EventKind;
use outlast_provider::Provider;
use outlast_runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use outlast_runtime::{
    ActivityContext, Client, ClientError, OrchestrationStatus, Reset, Runtime, RuntimeOptions,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

/// Event 3 is the outcome of the first activity, event 4 a key, event 6 the outcome of the second activity.
async fn order(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let reserved = ctx.schedule_activity("Reserve", input).await?;
    ctx.set_kv_value("stage", "reserved");
    let charged = ctx.schedule_activity("Charge", reserved).await?;
    ctx.set_kv_value("stage", "charged");
    let note = ctx.dequeue_event("note").await;
    Ok(format!("{charged} {note}"))
}

async fn family(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let child = ctx.schedule_sub_orchestration("Child", "");
    let first = ctx.dequeue_event("note").await;
    let child = child.await.unwrap_or_else(|error| error);
    Ok(format!("{first} {child}"))
}

async fn child(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    Ok(ctx.dequeue_event("note").await)
}

/// Starts a runtime whose `Charge` counts its calls and answers with this text and the number.
async fn start(store: &Arc<MemoryProvider>, charge: &'static str, calls: Arc<AtomicU64>) -> Arc<Runtime> {
    let activities = ActivityRegistry::builder()
        .register("Reserve", |_: ActivityContext, input: String| async move { Ok(format!("r({input})")) })
        .register("Charge", move |_: ActivityContext, input: String| {
            let nth = calls.fetch_add(1, Ordering::Relaxed) + 1;
            async move {
                match charge {
                    "fails" => Err("refused".to_string()),
                    other => Ok(format!("{other}{nth}({input})")),
                }
            }
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Order", order)
        .register("Family", family)
        .register("Child", child)
        .build();
    let store = Arc::clone(store) as Arc<dyn Provider>;
    Runtime::start_with_options(store, activities, orchestrations, RuntimeOptions::default()).await
}

async fn output(client: &Client, instance: &str) -> String {
    match client.wait_for_orchestration(instance, LONG).await.unwrap() {
        OrchestrationStatus::Completed { output, .. } => output,
        other => panic!("{other:?}"),
    }
}

/// Waits until an execution of the instance has this number of events.
async fn events(client: &Client, instance: &str, execution_id: u64, count: usize) {
    for _ in 0..10_000 {
        if client.read_execution_history(instance, execution_id).await.unwrap().len() >= count {
            return;
        }
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    panic!("'{instance}' does not go on");
}

fn refusal(error: ClientError) -> String {
    match error {
        ClientError::InvalidInput { message } => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn failed_instance_completes_after_a_reset_and_the_audit_has_it() {
    let store = Arc::new(MemoryProvider::new());
    let client = Client::new(store.clone());
    let runtime = start(&store, "fails", Arc::default()).await;
    client.start_orchestration("i", "Order", "in").await.unwrap();
    let failed = client.wait_for_orchestration("i", LONG).await.unwrap();
    assert!(matches!(failed, OrchestrationStatus::Failed { .. }), "{failed:?}");
    runtime.shutdown(None).await;
    let reset = Reset::to_event(4).by("ann").because("mended");
    let planned = client.reset_instance("i", &reset.clone().dry_run()).await.unwrap();
    assert_eq!(client.list_executions("i").await.unwrap(), [1], "a dry run changes nothing");
    let done = client.reset_instance("i", &reset).await.unwrap();
    assert_eq!(done, planned);
    assert_eq!((done.execution_id, done.kept_events, done.activities), (2, 4, 0));
    assert_eq!(client.get_kv_value("i", "stage").await.unwrap().as_deref(), Some("reserved"));
    let _runtime = start(&store, "c", Arc::default()).await;
    client.enqueue_event("i", "note", "thanks").await.unwrap();
    assert_eq!(output(&client, "i").await, "c1(r(in)) thanks");
    let audit = client.audit_page(None, 10).await.unwrap().unwrap();
    let entry = &audit[0].entry;
    assert_eq!((entry.action.as_str(), entry.target.as_str()), ("instance.reset", "i"));
    assert_eq!((entry.actor.as_str(), entry.reason.as_str()), ("ann", "mended"));
    assert_eq!(entry.result, "done: to event 4 of execution 1");
    assert_eq!(audit.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn running_instance_repeats_open_activity_and_keeps_queue_messages() {
    let store = Arc::new(MemoryProvider::new());
    let client = Client::new(store.clone());
    let calls = Arc::new(AtomicU64::new(0));
    let _runtime = start(&store, "c", Arc::clone(&calls)).await;
    client.start_orchestration("i", "Order", "in").await.unwrap();
    events(&client, "i", 1, 8).await;
    client.pause_instance("i", "ann", "look").await.unwrap();
    client.enqueue_event("i", "note", "waits").await.unwrap();
    let done = client.reset_instance("i", &Reset::to_event(5)).await.unwrap();
    assert_eq!((done.execution_id, done.activities, done.left_events), (2, 1, 3));
    assert!(client.held_instance("i").await.unwrap().is_some(), "it stays paused");
    let history = client.read_execution_history("i", 1).await.unwrap();
    let last = &history.last().unwrap().kind;
    assert_eq!(last, &EventKind::OrchestrationContinuedAsNew { input: "in".to_string() });
    client.resume_instance("i", "ann", "").await.unwrap();
    assert_eq!(output(&client, "i").await, "c2(r(in)) waits");
    assert_eq!(calls.load(Ordering::Relaxed), 2, "the activity of event 5 ran again");
}

#[tokio::test(start_paused = true)]
async fn read_queue_message_after_the_cut_is_delivered_again() {
    let store = Arc::new(MemoryProvider::new());
    let client = Client::new(store.clone());
    let _runtime = start(&store, "c", Arc::default()).await;
    client.start_orchestration("i", "Order", "in").await.unwrap();
    client.enqueue_event("i", "note", "early").await.unwrap();
    assert_eq!(output(&client, "i").await, "c1(r(in)) early");
    let history = client.read_execution_history("i", 1).await.unwrap();
    let arrived = history.iter().find(|event| matches!(event.kind, EventKind::QueueEventDelivered { .. }));
    let before = arrived.unwrap().event_id - 1;
    let done = client.reset_instance("i", &Reset::to_event(before)).await.unwrap();
    assert_eq!(done.messages, 1);
    assert_eq!(output(&client, "i").await, "c2(r(in)) early");
}

#[tokio::test(start_paused = true)]
async fn running_child_refuses_a_reset_or_is_cancelled() {
    let store = Arc::new(MemoryProvider::new());
    let client = Client::new(store.clone());
    let _runtime = start(&store, "c", Arc::default()).await;
    client.start_orchestration("i", "Family", "").await.unwrap();
    events(&client, "i", 1, 3).await;
    events(&client, "i::sub::2", 1, 2).await;
    let error = refusal(client.reset_instance("i", &Reset::to_event(2)).await.unwrap_err());
    assert!(error.contains("running children would be lost: i::sub::2"), "{error}");
    let error = refusal(client.fork_instance("i", "f", &Reset::to_event(2)).await.unwrap_err());
    assert!(error.contains("wait until the children have ended"), "{error}");
    let done = client.reset_instance("i", &Reset::to_event(2).cancel_children()).await.unwrap();
    assert_eq!(done.cancelled_children, ["i::sub::2"]);
    client.enqueue_event("i", "note", "n").await.unwrap();
    let told = output(&client, "i").await;
    assert!(told.starts_with("n ") && told.contains("parent was reset"), "{told}");
    let child = client.wait_for_orchestration("i::sub::2", LONG).await.unwrap();
    assert!(matches!(child, OrchestrationStatus::Failed { .. }), "{child:?}");
}

#[tokio::test(start_paused = true)]
async fn ended_child_answers_with_its_stored_outcome() {
    let store = Arc::new(MemoryProvider::new());
    let client = Client::new(store.clone());
    let _runtime = start(&store, "c", Arc::default()).await;
    client.start_orchestration("i", "Family", "").await.unwrap();
    events(&client, "i::sub::2", 1, 2).await;
    client.enqueue_event("i::sub::2", "note", "out").await.unwrap();
    events(&client, "i", 1, 4).await;
    let done = client.fork_instance("i", "f", &Reset::to_event(3)).await.unwrap();
    assert_eq!((done.execution_id, done.answered_children), (1, vec!["i::sub::2".to_string()]));
    client.enqueue_event("f", "note", "fork").await.unwrap();
    client.enqueue_event("i", "note", "source").await.unwrap();
    assert_eq!(output(&client, "f").await, "fork out");
    assert_eq!(output(&client, "i").await, "source out");
}

#[tokio::test(start_paused = true)]
async fn cut_that_is_not_possible_is_refused_with_the_reason() {
    let store = Arc::new(MemoryProvider::new());
    let client = Client::new(store.clone());
    let runtime = start(&store, "fails", Arc::default()).await;
    client.start_orchestration("i", "Order", "in").await.unwrap();
    client.wait_for_orchestration("i", LONG).await.unwrap();
    let last = client.read_execution_history("i", 1).await.unwrap().len() as u64;
    for (event, part) in
        [(0, "is out of range"), (last + 1, "has events 1 to"), (last, "the end of the execution")]
    {
        let error = refusal(client.reset_instance("i", &Reset::to_event(event)).await.unwrap_err());
        assert!(error.contains(part) && error.contains("instance 'i'"), "{error}");
    }
    let unknown = client.reset_instance("unknown", &Reset::to_event(1)).await.unwrap_err();
    assert!(matches!(unknown, ClientError::InstanceNotFound { .. }), "{unknown:?}");
    let error = refusal(client.fork_instance("i", "i", &Reset::to_event(1)).await.unwrap_err());
    assert!(error.contains("'i' is taken"), "{error}");
    client.start_orchestration("taken", "Child", "").await.unwrap();
    let error = refusal(client.fork_instance("i", "taken", &Reset::to_event(1)).await.unwrap_err());
    assert!(error.contains("'taken' is taken"), "{error}");
    runtime.shutdown(None).await;
}
