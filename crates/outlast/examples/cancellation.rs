//! Cancelling an instance also cancels its children and its running activities.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::providers::memory::MemoryProvider;
use outlast::runtime::Runtime;
use outlast::runtime::registry::ActivityRegistry;
use outlast::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

async fn parent(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.schedule_sub_orchestration_with_id("Child", "child-1", "").await
}

async fn child(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.schedule_activity("Transcode", "film.mp4").await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (tell, mut told) = mpsc::unbounded_channel();
    let activities = ActivityRegistry::builder()
        .register("Transcode", move |ctx: ActivityContext, film: String| {
            let tell = tell.clone();
            async move {
                tell.send(format!("transcoding {film}")).map_err(|error| error.to_string())?;
                // A long activity that checks for cancellation.
                ctx.cancelled().await;
                tell.send(format!("cleaned up after {film}")).map_err(|error| error.to_string())?;
                Err("stopped".to_string())
            }
        })
        .build();
    let orchestrations =
        OrchestrationRegistry::builder().register("Parent", parent).register("Child", child).build();
    let store = Arc::new(MemoryProvider::new());
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store);

    client.start_orchestration("parent-1", "Parent", "").await?;
    println!("{}", told.recv().await.ok_or("it runs")?);
    client.cancel_instance("parent-1", "the viewer went home").await?;
    println!("{}", told.recv().await.ok_or("it was told")?);
    for (instance, expected) in
        [("parent-1", "canceled: the viewer went home"), ("child-1", "canceled: parent canceled")]
    {
        match client.wait_for_orchestration(instance, Duration::from_secs(5)).await? {
            OrchestrationStatus::Failed { details, .. } => {
                println!("{instance}: {}", details.display_message());
                assert_eq!(details.display_message(), expected);
            }
            other => return Err(format!("{instance}: {other:?}").into()),
        }
    }
    runtime.shutdown(None).await;
    Ok(())
}
