//! Cancelling an instance also cancels its children and its running activities.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use std::error::Error;
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

#[outlast::activity]
async fn transcode(
    ctx: ActivityContext,
    State(tell): State<UnboundedSender<String>>,
    film: String,
) -> outlast::Result<()> {
    tell.send(format!("transcoding {film}"))?;
    // A long activity that checks for cancellation.
    ctx.cancelled().await;
    tell.send(format!("cleaned up after {film}"))?;
    Err(outlast::Error::new("stopped"))
}

#[outlast::orchestration]
async fn child(ctx: OrchestrationContext) -> outlast::Result<()> {
    Ok(transcode::call(&ctx, "film.mp4".into()).await?)
}

#[outlast::orchestration]
async fn parent(ctx: OrchestrationContext) -> outlast::Result<()> {
    Ok(child::child(&ctx).id("child-1").await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (tell, mut told) = unbounded_channel::<String>();
    let store = Arc::new(MemoryProvider::new());
    let module = outlast::module![transcode, child, parent];
    let runtime = Runtime::builder().store(store.clone()).register(module).state(tell).start().await?;
    let client = Client::new(store);

    let instance = parent::start(&client).id("parent-1").await?;
    println!("{}", told.recv().await.ok_or("it runs")?);
    instance.cancel("the viewer went home").await?;
    println!("{}", told.recv().await.ok_or("it was told")?);
    let ended = instance.result().await;
    let child_ended = child::handle(&client, "child-1").result().await;
    println!("parent: {ended:?}, child: {child_ended:?}");
    assert_eq!(ended, Err(CallError::Cancelled("the viewer went home".into())));
    assert_eq!(child_ended, Err(CallError::Cancelled("parent canceled".into())));
    runtime.shutdown(None).await;
    Ok(())
}
