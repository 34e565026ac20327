//! Messages to instances that do not exist or have ended, and waits that time out.

use crate::support::{Cluster, Kind, Node};
use async_trait::async_trait;
use outlast::author::Orchestration;
use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use outlast::providers::{
    HeldInstance, PendingWork, Provider, ProviderAdmin, ProviderError, forward_provider,
};
use outlast::runtime::OnMisfit;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

#[derive(Serialize, Deserialize, outlast::Message)]
#[message(reply = String)]
struct Hello(String);

#[outlast::orchestration(accepts(Hello))]
async fn greeter(ctx: OrchestrationContext) -> Result<String, String> {
    let hello: Hello = ctx.next().await?;
    Ok(hello.0)
}

#[outlast::orchestration(accepts(Hello))]
async fn unregistered(_ctx: OrchestrationContext) -> Result<(), String> {
    Ok(())
}

const SHORT: Duration = Duration::from_millis(50);
/// A payload, which no error may quote.
const SECRET: &str = "s3cret";

#[tokio::test]
async fn sends_to_an_instance_that_does_not_exist_say_so() {
    for kind in [Kind::Memory, Kind::SqliteMemory] {
        let cluster = Cluster::real(kind).await;
        let nobody = greeter::handle(&cluster.client, "nobody");
        for refused in [
            nobody.send(Hello("x".into())).await,
            nobody.cancel("because").await,
            nobody.ask(Hello("x".into())).await.map(drop),
            nobody.status().await.map(drop),
        ] {
            assert!(
                matches!(&refused, Err(InstanceError::NotFound { instance }) if instance == "nobody"),
                "{refused:?}"
            );
        }
        // A start that no runtime has taken yet counts as an instance.
        let early = greeter::start(&cluster.client).id("early").await.unwrap();
        // A reference does as well: the message is encoded at once.
        let queued = Hello("queued".into());
        early.send(&queued).await.unwrap();
        drop(queued);
        cluster.start(&Node::of(outlast::module![greeter])).await;
        assert_eq!(early.result().await.unwrap(), "queued");
        let ended = early.send(Hello("late".into())).await;
        assert!(matches!(ended, Err(InstanceError::Ended { status: "Completed", .. })), "{ended:?}");
        let again = greeter::start(&cluster.client).id("early").await;
        assert!(matches!(again, Err(InstanceError::AlreadyExists(_))), "{again:?}");
        assert_eq!(greeter::start(&cluster.client).id("early").or_existing().await.unwrap().id(), "early");
        let ended =
            greeter::start(&cluster.client).id("early").or_existing().with(&Hello("late".into())).await;
        assert!(matches!(ended, Err(InstanceError::Ended { status: "Completed", .. })), "{ended:?}");
        cluster.end().await;
    }
}

fn timed_out<T: std::fmt::Debug, E: std::fmt::Debug>(ended: Result<T, CallError<E>>) -> String {
    match ended {
        Err(CallError::TimedOut(text)) => text,
        other => panic!("{other:?}"),
    }
}

/// Waits until a result that times out has this part in its text.
async fn says<O: Orchestration>(handle: &Handle<O>, part: &str)
where
    O::Output: std::fmt::Debug,
    O::Error: std::fmt::Debug,
{
    for _ in 0..1_000 {
        let text = timed_out(handle.result().within(SHORT).await);
        assert!(!text.contains(SECRET), "{text}");
        if text.contains(part) {
            return;
        }
    }
    panic!("'{part}' is not in: {}", timed_out(handle.result().within(SHORT).await));
}

/// A runtime whose reports are stored soon.
fn reporting() -> Node {
    Node::of(outlast::module![greeter])
        .with(|options| options.node_heartbeat = Some(Duration::from_millis(100)))
}

#[tokio::test]
async fn a_result_that_times_out_names_the_state_of_its_instance() {
    for kind in [Kind::Memory, Kind::SqliteMemory] {
        let cluster = Cluster::real(kind).await;
        let client = &cluster.client;
        let due = greeter::start(client).id("due").await.unwrap();
        says(&due, "it has had its first turn due for ").await;
        says(&due, "start a runtime that registers 'greeter'").await;
        cluster.start(&reporting()).await;
        let missing = timed_out(greeter::handle(client, "nobody").result().within(SHORT).await);
        assert_eq!(
            missing,
            "instance 'nobody' of 'greeter' has not ended after 50ms: it does not exist: the store has no event and no \
             message of it"
        );
        let waiting = greeter::start(client).id("waiting").await.unwrap();
        says(&waiting, "for a message of queue 'hello', and no client has sent one").await;

        assert!(client.pause_instance("waiting", "ann", "deploy").await.unwrap());
        waiting.send(Hello(SECRET.into())).await.unwrap();
        says(&waiting, "it was paused by 'ann' at ").await;
        says(&waiting, "('deploy'), and 1 message waits: `outlast instance resume waiting`").await;
        let unanswered = waiting.ask(Hello(SECRET.into())).within(SHORT).await;
        let text = unanswered.map(drop).unwrap_err().to_string();
        assert!(text.contains("it was paused by 'ann'") && !text.contains(SECRET), "{text}");

        unregistered::start(client).id("unknown").await.unwrap();
        says(&unregistered::handle(client, "unknown"), "no live node registers 'unregistered'").await;
        cluster.end().await;
    }
}

#[tokio::test]
async fn a_result_of_a_parked_instance_that_times_out_says_so() {
    for kind in [Kind::Memory, Kind::SqliteMemory] {
        let cluster = Cluster::real(kind).await;
        let node = Node::of(outlast::module![greeter]).with(|options| {
            options.on_misfit = OnMisfit::Park;
            options.build_id = "7".to_string();
            options.max_attempts = 2;
            options.unregistered_backoff.base_delay = Duration::from_millis(10);
            options.unregistered_backoff.max_delay = Duration::from_millis(10);
        });
        cluster.start(&node).await;
        let parked = unregistered::start(&cluster.client).id("parked").await.unwrap();
        says(&parked, "it was parked by 'build 7' at ").await;
        says(&parked, "`outlast instance resume parked`").await;
        cluster.end().await;
    }
}

/// A store that cannot read holds, and reads queues only if `answers`.
struct Partial {
    store: MemoryProvider,
    answers: bool,
}

#[async_trait]
impl Provider for Partial {
    forward_provider!(Provider, |this| this.store, except(as_management_capability));

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }
}

#[async_trait]
impl ProviderAdmin for Partial {
    forward_provider!(ProviderAdmin, |this| this.store, except(held_instance, pending));

    async fn held_instance(&self, _instance: &str) -> Result<Option<HeldInstance>, ProviderError> {
        Err(ProviderError::permanent("held_instance", "no table of holds"))
    }

    async fn pending(&self, instance: &str, limit: usize) -> Result<Option<PendingWork>, ProviderError> {
        match self.answers {
            true => self.store.pending(instance, limit).await,
            false => std::future::pending().await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_times_out_does_not_hang_when_the_diagnosis_does() {
    for (answers, expected) in [
        (
            true,
            "its start was delivered 0 times, and no process has run it: does a running process register 'greeter'?",
        ),
        (false, "its state could not be read: the store does not answer"),
    ] {
        let client = Client::new(Arc::new(Partial { store: MemoryProvider::new(), answers }));
        let started = greeter::start(&client).id("started").await.unwrap();
        let began = tokio::time::Instant::now();
        let text = timed_out(started.result().within(SHORT).await);
        assert!(text.ends_with(expected), "{text}");
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    }
}

#[tokio::test]
async fn a_start_without_an_id_gets_one_of_its_own() {
    let cluster = Cluster::real(Kind::Memory).await;
    cluster.start(&Node::of(outlast::module![greeter])).await;
    let hello = Hello("hi".into());
    let one = greeter::start(&cluster.client).with(&hello).await.unwrap();
    let two = greeter::start(&cluster.client).with(&hello).await.unwrap();
    assert_ne!(one.id(), two.id());
    assert!(one.id().starts_with("greeter-"), "{one:?}");
    assert_eq!((one.result().await.unwrap(), two.result().await.unwrap()), ("hi".into(), "hi".into()));
    cluster.end().await;
}
