//! The limit of unread messages that one execution carries over to the next.

use super::{ALL, Cluster, Node, activities, orchestrations, sizes, small};
use outlast::OrchestrationContext;
use outlast::providers::MessageBound;

#[tokio::test]
async fn messages_above_the_carry_forward_limit_are_dropped() {
    for kind in ALL {
        let (cluster, limits) = (Cluster::real(kind).await, small());
        let limit = limits.carry_forward_events;
        let counts = |ctx: OrchestrationContext, _: String| async move {
            if ctx.execution_id() == 1 {
                return ctx.continue_as_new("").await;
            }
            let mut read = 0;
            while ctx.dequeue_event("queue").await != "end" {
                read += 1;
                ctx.set_custom_status(read.to_string());
            }
            Ok(read.to_string())
        };
        let node = Node::new(orchestrations().register("Counts", counts), activities());
        cluster.start(&node.with(move |options| options.limits = limits.clone())).await;
        for (messages, _) in sizes(limit) {
            // One fetch returns all messages: messages that stay in the queue are delivered to the successor without being carried.
            let messages = messages.min(MessageBound::default().messages - 1);
            let instance = format!("i-{messages}");
            let mut request = cluster.client.start_request("Counts").instance(&instance);
            for n in 0..messages {
                request = request.with_event("queue", n.to_string());
            }
            request.send().await.unwrap().started().unwrap();
            cluster.says(&instance, &limit.to_string()).await;
            cluster.client.enqueue_event(&instance, "queue", "end").await.unwrap();
            assert_eq!(cluster.output(&instance).await, limit.to_string(), "{kind:?}: {instance}");
        }
        cluster.end().await;
    }
}
