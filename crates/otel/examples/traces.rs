//! Prints the spans of an order. With the address of a collector as argument it sends them there: `cargo run -p outlast-otel --example
//! traces http://127.0.0.1:4318`.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use outlast::RuntimeOptions;
use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use outlast_otel::Traces;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

#[outlast::activity(retry = 3, backoff = "1ms")]
async fn charge(ctx: ActivityContext, order: String) -> Result<String, String> {
    if ctx.attempt() == 1 {
        return Err("the bank does not answer".to_string());
    }
    // A request to the bank would send this header.
    println!("charging {order} under traceparent {}", ctx.traceparent().unwrap_or("none"));
    Ok(format!("{order} is paid"))
}

#[outlast::orchestration]
async fn order(ctx: OrchestrationContext, name: String) -> Result<String, String> {
    let paid = charge::call(&ctx, name).await?;
    ctx.schedule_timer(Duration::from_millis(10)).await;
    Ok(paid)
}

/// An exporter that prints.
#[derive(Debug)]
struct Print;

impl SpanExporter for Print {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        for span in batch {
            let (context, took) = (&span.span_context, span.end_time.duration_since(span.start_time));
            let (trace, id, parent) = (context.trace_id(), context.span_id(), span.parent_span_id);
            println!("{trace} {id} below {parent}: {:<22} {:?}", span.name, took.unwrap_or_default());
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let traces = match std::env::args().nth(1) {
        Some(collector) => Traces::otlp(&collector)?.service("shop").start(),
        None => Traces::with_exporter(Print).service("shop").start(),
    };
    let store = Arc::new(MemoryProvider::new());
    let options = RuntimeOptions { observer: Some(traces.observe()), ..RuntimeOptions::default() };
    let module = outlast::module![charge, order];
    let runtime = Runtime::builder().store(store.clone()).register(module).options(options).start().await?;
    let client = Client::new(store);

    // A web server would take this text from the header of the request.
    let caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let paid =
        order::start(&client, "order 7".into()).id("order-7").traceparent(caller).await?.result().await?;
    assert_eq!(paid, "order 7 is paid");

    runtime.shutdown(None).await;
    traces.shutdown(Duration::from_secs(5)).await?;
    // `start order`, `orchestration.started`, two deliveries of `activity charge`, `timer`, `orchestration order`.
    assert_eq!((traces.exported(), traces.dropped()), (6, 0));
    Ok(())
}
