//! Steps that are undone when a later step fails, with ordinary control flow.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::providers::memory::MemoryProvider;
use outlast::runtime::Runtime;
use outlast::runtime::registry::ActivityRegistry;
use outlast::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

async fn trip(ctx: OrchestrationContext, parts: Vec<String>) -> Result<String, String> {
    let mut booked: Vec<String> = Vec::new();
    for part in parts {
        match ctx.schedule_activity("Book", part).await {
            Ok(booking) => booked.push(booking),
            Err(error) => {
                for booking in booked.into_iter().rev() {
                    ctx.schedule_activity("Cancel", booking).await?;
                }
                return Err(format!("no trip: {error}"));
            }
        }
    }
    Ok(booked.join(", "))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let activities = ActivityRegistry::builder()
        .register("Book", |_: ActivityContext, part: String| async move {
            println!("book {part}");
            if part == "rocket" { Err("no rocket left".to_string()) } else { Ok(format!("{part} #1")) }
        })
        .register("Cancel", |_: ActivityContext, booking: String| async move {
            println!("cancel {booking}");
            Ok(booking)
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder().register_typed("Trip", trip).build();
    let store = Arc::new(MemoryProvider::new());
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store);

    client.start_orchestration_typed("to-the-sea", "Trip", ["train", "hotel"]).await?;
    client.start_orchestration_typed("to-the-moon", "Trip", ["train", "hotel", "rocket"]).await?;
    let sea = client.wait_for_orchestration_typed::<String>("to-the-sea", Duration::from_secs(5)).await?;
    let moon = client.wait_for_orchestration_typed::<String>("to-the-moon", Duration::from_secs(5)).await?;
    println!("sea: {sea:?}, moon: {moon:?}");
    assert_eq!(sea.as_deref(), Ok("train #1, hotel #1"));
    assert_eq!(moon.as_ref().map_err(String::as_str), Err("no trip: no rocket left"));
    runtime.shutdown(None).await;
    Ok(())
}
