//! Unread messages that one execution leaves to the next.

use super::{ALL, Node, World, activities, orchestrations, sizes, small};
use outlast::OrchestrationContext;
use outlast::providers::MessageBound;

#[tokio::test]
async fn no_more_messages_are_carried_over_than_the_limit() {
    for kind in ALL {
        let (world, limits) = (World::real(kind).await, small());
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
        world.start(&node.with(move |options| options.limits = limits.clone())).await;
        for (messages, _) in sizes(limit) {
            // One fetch brings them all: messages that a first fetch leaves behind reach the successor by themselves.
            let messages = messages.min(MessageBound::default().messages - 1);
            let instance = format!("i-{messages}");
            let mut request = world.client.start_request("Counts").instance(&instance);
            for n in 0..messages {
                request = request.with_event("queue", n.to_string());
            }
            request.send().await.unwrap().started().unwrap();
            world.says(&instance, &limit.to_string()).await;
            world.client.enqueue_event(&instance, "queue", "end").await.unwrap();
            assert_eq!(world.output(&instance).await, limit.to_string(), "{kind:?}: {instance}");
        }
        world.end().await;
    }
}
