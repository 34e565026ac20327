//! The limit of messages that wait for one instance.

use super::{ALL, Cluster, Node, activities, check_message, client, orchestrations, sizes, small};
use outlast::runtime::limits::Limits;
use outlast::{ActivityContext, Client, OrchestrationContext};

/// Sends this number of messages to an instance. Returns the number of accepted messages, and the last error.
async fn flood(client: &Client, instance: &str, messages: usize) -> (usize, String) {
    let (mut taken, mut refusal) = (0, String::new());
    for n in 0..messages {
        // Both kinds of messages count.
        let sent = match n % 2 {
            0 => client.enqueue_event(instance, "queue", n.to_string()).await,
            _ => client.raise_event(instance, "event", n.to_string()).await,
        };
        match sent {
            Ok(()) => taken += 1,
            Err(error) => refusal = client::words(error),
        }
    }
    (taken, refusal)
}

#[tokio::test]
async fn a_full_mailbox_rejects_messages() {
    for kind in ALL {
        let cluster = Cluster::real(kind).await;
        let (client, limit) = (cluster.client.clone().with_limits(small()), small().mailbox_messages);
        for (messages, fits) in sizes(limit) {
            let instance = format!("i-{messages}");
            let (taken, refusal) = flood(&client, &instance, messages).await;
            assert_eq!(taken, limit, "{kind:?}: {instance}");
            match fits {
                true => assert_eq!(refusal, ""),
                false => check_message(&refusal, "mailbox_messages", &instance),
            }
            // A cancellation is accepted at the limit: it ends the instance and so removes its messages.
            client.cancel_instance(&instance, "").await.unwrap();
        }
        cluster.end().await;
    }
}

/// The client of an activity has the same limit.
#[tokio::test]
async fn a_full_mailbox_rejects_messages_of_an_activity() {
    for kind in ALL {
        let cluster = Cluster::real(kind).await;
        let (limits, limit) = (small(), small().mailbox_messages);
        let floods = |ctx: ActivityContext, messages: String| async move {
            let instance = format!("nobody-{messages}");
            let (taken, refusal) = flood(&ctx.get_client(), &instance, messages.parse().unwrap()).await;
            Ok(format!("{taken} {refusal}"))
        };
        let node = Node::new(crate::support::calls("Flood"), activities().register("Flood", floods));
        cluster.start(&node.with(move |options| options.limits = limits.clone())).await;
        for (messages, fits) in sizes(limit) {
            // Messages for an instance that does not exist wait or are dropped: there are never more than the limit.
            let output = cluster.run(&format!("i-{messages}"), "Calls", &messages.to_string()).await;
            let (taken, refusal) = output.split_once(' ').unwrap();
            assert!(taken.parse::<usize>().unwrap() >= limit, "{kind:?}: {output}");
            if !fits && !refusal.is_empty() {
                check_message(refusal, "mailbox_messages", &format!("nobody-{messages}"));
            }
        }
        cluster.end().await;
    }
}

/// The instance reads its messages, and the mailbox accepts others.
#[tokio::test]
async fn a_mailbox_accepts_messages_after_the_instance_has_read_some() {
    for kind in ALL {
        let cluster = Cluster::real(kind).await;
        let client = cluster.client.clone().with_limits(Limits { mailbox_messages: 20, ..Limits::default() });
        client.start_orchestration("i", "Reads", "").await.unwrap();
        let mut accepted = 0;
        for n in 0..200 {
            accepted += usize::from(client.enqueue_event("i", "queue", n.to_string()).await.is_ok());
        }
        // The start counts as a message.
        assert_eq!(accepted, 19, "{kind:?}");
        client.enqueue_event("another", "queue", "").await.unwrap();
        let reads = |ctx: OrchestrationContext, _: String| async move {
            let mut read = Vec::new();
            loop {
                match ctx.dequeue_event("queue").await.as_str() {
                    "end" => return Ok(read.len().to_string()),
                    other => read.push(other.to_string()),
                }
                ctx.set_custom_status(read.len().to_string());
            }
        };
        cluster.start(&Node::new(orchestrations().register("Reads", reads), activities())).await;
        cluster.says("i", &accepted.to_string()).await;
        client.enqueue_event("i", "queue", "end").await.unwrap();
        assert_eq!(cluster.output("i").await, accepted.to_string());
        cluster.end().await;
    }
}
