//! Messages to instances that do not exist or have ended, and waits that time out.

use crate::support::{Cluster, Kind, Node};
use outlast::prelude::*;
use serde::{Deserialize, Serialize};
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
        early.send(Hello("queued".into())).await.unwrap();
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

#[tokio::test]
async fn a_result_that_times_out_says_what_is_known() {
    for kind in [Kind::Memory, Kind::SqliteMemory] {
        let cluster = Cluster::real(kind).await;
        cluster.start(&Node::of(outlast::module![greeter])).await;
        let client = &cluster.client;
        let says = |timed_out: Result<_, CallError<String>>, part: &str| match timed_out {
            Err(CallError::TimedOut(text)) => assert!(text.contains(part), "{text}"),
            other => panic!("{other:?}"),
        };
        let nobody = greeter::handle(client, "nobody").result().within(SHORT).await;
        says(nobody.map(drop), "'nobody' of 'greeter' has not ended after 50ms: no instance was started");
        let waiting = greeter::start(client).id("waiting").await.unwrap();
        // The status is there when the first turn is committed.
        while waiting.status().await.is_err() {
            tokio::task::yield_now().await;
        }
        says(waiting.result().within(SHORT).await.map(drop), "it waits for a message of queue 'hello', ");
        let unknown = unregistered::start(client).id("unknown").await.unwrap();
        let timed_out = unknown.result().within(SHORT).await;
        says(timed_out, "does a running process register 'unregistered'?");
        let unanswered = waiting.ask(Hello("x".into())).within(SHORT).await;
        assert!(
            matches!(&unanswered, Err(InstanceError::Ended { .. } | InstanceError::TimedOut { .. })),
            "{unanswered:?}"
        );
        cluster.end().await;
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
