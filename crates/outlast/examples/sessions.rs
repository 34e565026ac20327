//! A session sends activities to the same worker, which can keep expensive state in memory.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::providers::memory::MemoryProvider;
use outlast::runtime::Runtime;
use outlast::runtime::registry::ActivityRegistry;
use outlast::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions};
use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

async fn ask_model(ctx: ActivityContext, question: String) -> Result<String, String> {
    println!("{} answers '{question}' in session {:?}", ctx.worker_id(), ctx.session_id());
    Ok(ctx.worker_id().to_string())
}

async fn conversation(ctx: OrchestrationContext, topic: String) -> Result<BTreeSet<String>, String> {
    let mut workers = BTreeSet::new();
    for n in 1..=4 {
        let question = format!("{topic}, question {n}");
        workers.insert(ctx.schedule_activity_on_session("AskModel", question, ctx.instance_id()).await?);
    }
    Ok(workers)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(MemoryProvider::new());
    let mut runtimes = Vec::new();
    for node in ["left", "right"] {
        let activities = ActivityRegistry::builder().register("AskModel", ask_model).build();
        let orchestrations =
            OrchestrationRegistry::builder().register_typed("Conversation", conversation).build();
        let options = RuntimeOptions {
            worker_node_id: Some(node.to_string()),
            worker_concurrency: 1,
            ..RuntimeOptions::default()
        };
        runtimes.push(Runtime::start_with_options(store.clone(), activities, orchestrations, options).await);
    }
    let client = Client::new(store);
    for topic in ["gardening", "chess"] {
        client.start_orchestration_typed(topic, "Conversation", topic).await?;
    }
    for topic in ["gardening", "chess"] {
        let workers: BTreeSet<String> =
            client.wait_for_orchestration_typed(topic, Duration::from_secs(5)).await??;
        println!("{topic}: {workers:?}");
        assert_eq!(workers.len(), 1, "one worker for the whole conversation");
    }
    for runtime in runtimes {
        runtime.shutdown(None).await;
    }
    Ok(())
}
