//! A session sends activities to the same worker, which can keep expensive state in memory.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::RuntimeOptions;
use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;

#[outlast::activity]
async fn ask_model(ctx: ActivityContext, question: String) -> Result<String, String> {
    println!("{} answers '{question}' in session {:?}", ctx.worker_id(), ctx.session_id());
    Ok(ctx.worker_id().to_string())
}

#[outlast::orchestration]
async fn conversation(ctx: OrchestrationContext, topic: String) -> Result<BTreeSet<String>, String> {
    let mut workers = BTreeSet::new();
    for n in 1..=4 {
        let question = format!("{topic}, question {n}");
        workers.insert(ask_model::call(&ctx, question).session(ctx.instance_id()).await?);
    }
    Ok(workers)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(MemoryProvider::new());
    let mut runtimes = Vec::new();
    for node in ["left", "right"] {
        let options = RuntimeOptions {
            worker_node_id: Some(node.to_string()),
            worker_concurrency: 1,
            ..RuntimeOptions::default()
        };
        let module = outlast::module![ask_model, conversation];
        let runtime = Runtime::builder().store(store.clone()).register(module).options(options);
        runtimes.push(runtime.start().await?);
    }
    let client = Client::new(store);
    for topic in ["gardening", "chess"] {
        conversation::start(&client, topic.into()).id(topic).await?;
    }
    for topic in ["gardening", "chess"] {
        let workers = conversation::handle(&client, topic).result().await?;
        println!("{topic}: {workers:?}");
        assert_eq!(workers.len(), 1, "one worker for the whole conversation");
    }
    for runtime in runtimes {
        runtime.shutdown(None).await;
    }
    Ok(())
}
