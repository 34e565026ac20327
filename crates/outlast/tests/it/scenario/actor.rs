//! An actor that takes messages from a queue one by one; no message is lost, also across continue-as-new.

use crate::support::{Cluster, Node, activities, on_every_store, orchestrations};
use outlast::OrchestrationContext;
use std::sync::Arc;

on_every_store! { actor: 60 }

async fn account(ctx: OrchestrationContext, mut balance: i64) -> Result<String, String> {
    for _ in 0..3 {
        let command = ctx.dequeue_event("commands").await;
        match command.split_once(' ') {
            Some(("deposit", amount)) => {
                balance += amount.parse::<i64>().map_err(|error| error.to_string())?
            }
            Some(("withdraw", amount)) => {
                balance -= amount.parse::<i64>().map_err(|error| error.to_string())?
            }
            _ => return Ok(format!("closed with {balance}")),
        }
        ctx.set_kv_value("balance", balance.to_string());
    }
    ctx.continue_as_new_typed(&balance).await
}

async fn actor(cluster: Arc<Cluster>) {
    cluster.start(&Node::new(orchestrations().register_typed("Account", account), activities())).await;
    cluster.client.start_orchestration_typed("account-1", "Account", 100_i64).await.unwrap();
    for n in 1..=10 {
        let command = if n % 2 == 0 { format!("withdraw {n}") } else { format!("deposit {}", 10 * n) };
        cluster.client.enqueue_event("account-1", "commands", command).await.unwrap();
    }
    cluster.client.enqueue_event("account-1", "commands", "close").await.unwrap();
    assert_eq!(cluster.output("account-1").await, "closed with 320");
    assert_eq!(cluster.client.get_kv_value("account-1", "balance").await.unwrap().as_deref(), Some("320"));
    assert_eq!(cluster.client.list_executions("account-1").await.unwrap().len(), 4);
}
