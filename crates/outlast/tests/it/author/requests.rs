//! Requests and answers, and the reserved keys that hold the answers.

use crate::support::{Cluster, Node, on_every_store};
use outlast::author::Request;
use outlast::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

on_every_store! { request_and_answer: 20 }

#[derive(Serialize, Deserialize, outlast::Message)]
#[message(reply = u64)]
struct Add {
    cents: u64,
}

#[derive(Serialize, Deserialize, outlast::Message)]
#[message(name = "checkout")]
struct Close;

const TOTAL: Key<u64> = Key::new("total");

#[outlast::orchestration(accepts(Add, Close))]
async fn cart(ctx: OrchestrationContext, items: u32) -> Result<u64, String> {
    let mut total = 0;
    for _ in 0..items {
        let add = ctx.next_request::<Add>().await?;
        total += add.cents;
        ctx.set(TOTAL, &total);
        add.answer(&total)?;
    }
    ctx.clear_all_kv_values();
    let _: Close = ctx.next().await?;
    Ok(total)
}

async fn request_and_answer(cluster: Arc<Cluster>) {
    cluster.start(&Node::of(outlast::module![cart])).await;
    let cart = cart::start(&cluster.client, 3).id("cart").await.unwrap();
    let patience = Duration::from_secs(600);
    assert_eq!(cart.ask(&Add { cents: 5 }).within(patience).await.unwrap(), 5);
    // A message that no one waits for an answer to.
    cart.send(Add { cents: 10 }).await.unwrap();
    assert_eq!(cart.ask(Add { cents: 1 }).within(patience).await.unwrap(), 16);
    cart.send(Close).await.unwrap();
    assert_eq!(cart.result().await.unwrap(), 16);
    assert_eq!(cluster.client.get_kv_all_values("cart").await.unwrap().len(), 0, "answers are not listed");
    let answers = cluster.store().get_kv_all_values("cart").await.unwrap();
    assert_eq!(answers.len(), 2, "answers survive clear_all_kv_values: {answers:?}");
    let late = cart.ask(Add { cents: 5 }).await;
    assert!(matches!(late, Err(InstanceError::Ended { status: "Completed", .. })), "{late:?}");
    fn is_request<M: Request<Reply = u64>>() {}
    is_request::<Add>();
}

#[outlast::orchestration(accepts(Add))]
async fn counter(ctx: OrchestrationContext, rounds: u32) -> Result<usize, String> {
    for round in 0..rounds {
        ctx.next_request::<Add>().await?.answer(&u64::from(round))?;
    }
    ctx.set_kv_value("mine", "1");
    Ok(ctx.get_kv_all_keys().len())
}

#[tokio::test]
async fn an_instance_keeps_its_last_64_answers_outside_of_the_limit_of_keys() {
    let cluster = Cluster::real(crate::support::Kind::Memory).await;
    cluster.start(&Node::of(outlast::module![counter]).with(|options| options.limits.kv_keys = 1)).await;
    let counter = counter::start(&cluster.client, 66).id("counter").await.unwrap();
    for round in 0..66 {
        assert_eq!(counter.ask(Add { cents: 1 }).await.unwrap(), round);
    }
    assert_eq!(counter.result().await.unwrap(), 1, "reserved keys are not listed");
    let stored = cluster.store().get_kv_all_values("counter").await.unwrap();
    assert_eq!(stored.len(), 64 + 1, "the two oldest answers are gone");
    cluster.end().await;
}
