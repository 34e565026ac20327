//! OpenTelemetry traces of Outlast.
//!
//! Spans are values that are made from the history after the commit of a turn, and exported once. Their ids are hashes of the
//! instance, the execution, the event and the delivery, so every node computes the same ids, before and after a crash. No span holds
//! a payload.
//!
//! ```no_run
//! use outlast::RuntimeOptions;
//! use outlast_otel::Traces;
//! use std::time::Duration;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let traces = Traces::otlp("http://127.0.0.1:4318")?.service("shop").start();
//! let options = RuntimeOptions { observer: Some(traces.observe()), ..RuntimeOptions::default() };
//! // Start a runtime with these options, work, and shut the runtime down. Then:
//! traces.shutdown(Duration::from_secs(5)).await?;
//! # drop(options);
//! # Ok(())
//! # }
//! ```
//!
//! | span | kind | from | to | parent |
//! |---|---|---|---|---|
//! | `start X` | producer | the call of the client, or the turn that starts X detached | the first turn of X, or the same turn | the caller's span, or the orchestration |
//! | `orchestration X` | internal | the first event | the last event of the execution | `start X`, or the parent's orchestration |
//! | `orchestration.started` | internal | the first event | the same, so that a trace is visible at once | the orchestration |
//! | `activity X` | consumer | the start of the handler | its return; one span per delivery | the orchestration |
//! | `timer` | internal | the creation | the firing | the orchestration |
//! | `wait X` | internal | the wait for an event or a queue message | its arrival, or the cancellation | the orchestration |
//!
//! A child is in the trace of its parent. An execution after continue-as-new has a trace of its own with a link to the execution
//! before it. A detached instance has a trace of its own with a link to `start X` of its starter.

mod export;
mod fold;
mod ids;
mod observer;
mod origin;
mod seen;
mod span;
mod traces;

pub use traces::{FlushError, Traces, TracesBuilder};
