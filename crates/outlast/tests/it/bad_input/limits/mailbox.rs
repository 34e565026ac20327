//! Messages that wait for one instance.

use super::{ALL, Node, World, activities, client, judge, orchestrations, sizes, small};
use outlast::runtime::limits::Limits;
use outlast::{ActivityContext, Client, OrchestrationContext};

/// Sends this many messages to an instance; how many were taken, and the last refusal.
async fn flood(client: &Client, instance: &str, messages: usize) -> (usize, String) {
    let (mut taken, mut refusal) = (0, String::new());
    for n in 0..messages {
        // Both kinds count.
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
async fn a_mailbox_takes_no_more_than_its_limit() {
    for kind in ALL {
        let world = World::real(kind).await;
        let (client, limit) = (world.client.clone().with_limits(small()), small().mailbox_messages);
        for (messages, fits) in sizes(limit) {
            let instance = format!("i-{messages}");
            let (taken, refusal) = flood(&client, &instance, messages).await;
            assert_eq!(taken, limit, "{kind:?}: {instance}");
            match fits {
                true => assert_eq!(refusal, ""),
                false => judge(&refusal, "mailbox_messages", &instance),
            }
            // However full it is: this is what empties it.
            client.cancel_instance(&instance, "").await.unwrap();
        }
        world.end().await;
    }
}

/// Through the client of an activity.
#[tokio::test]
async fn an_activity_is_refused_at_a_full_mailbox() {
    for kind in ALL {
        let world = World::real(kind).await;
        let (limits, limit) = (small(), small().mailbox_messages);
        let floods = |ctx: ActivityContext, messages: String| async move {
            let instance = format!("nobody-{messages}");
            let (taken, refusal) = flood(&ctx.get_client(), &instance, messages.parse().unwrap()).await;
            Ok(format!("{taken} {refusal}"))
        };
        let node = Node::new(crate::support::calls("Flood"), activities().register("Flood", floods));
        world.start(&node.with(move |options| options.limits = limits.clone())).await;
        for (messages, fits) in sizes(limit) {
            // Messages for an instance that nobody starts wait, or are dropped now and then: never are there more.
            let output = world.run(&format!("i-{messages}"), "Calls", &messages.to_string()).await;
            let (taken, refusal) = output.split_once(' ').unwrap();
            assert!(taken.parse::<usize>().unwrap() >= limit, "{kind:?}: {output}");
            if !fits && !refusal.is_empty() {
                judge(refusal, "mailbox_messages", &format!("nobody-{messages}"));
            }
        }
        world.end().await;
    }
}

/// What was taken is read, and there is room again.
#[tokio::test]
async fn a_mailbox_that_was_read_has_room_again() {
    for kind in ALL {
        let world = World::real(kind).await;
        let client = world.client.clone().with_limits(Limits { mailbox_messages: 20, ..Limits::default() });
        client.start_orchestration("i", "Reads", "").await.unwrap();
        let mut accepted = 0;
        for n in 0..200 {
            accepted += usize::from(client.enqueue_event("i", "queue", n.to_string()).await.is_ok());
        }
        // The start waits too.
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
        world.start(&Node::new(orchestrations().register("Reads", reads), activities())).await;
        world.says("i", &accepted.to_string()).await;
        client.enqueue_event("i", "queue", "end").await.unwrap();
        assert_eq!(world.output("i").await, accepted.to_string());
        world.end().await;
    }
}
