//! The program of docs/observability.md: the page shows the lines between the marks.

use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use std::sync::Arc;

#[tokio::test]
async fn program_of_the_page_starts_and_ends_without_a_collector() {
    async fn program() -> Result<(), Box<dyn std::error::Error>> {
        let (store, module) = (Arc::new(MemoryProvider::new()), outlast::module![]);
        // guide: traces
        use outlast::RuntimeOptions;
        use outlast_otel::Traces;
        use std::time::Duration;

        let traces = Traces::otlp("http://127.0.0.1:4318")?.service("shop").start();
        let options = RuntimeOptions { observer: Some(traces.observe()), ..RuntimeOptions::default() };
        let runtime = Runtime::builder().store(store).register(module).options(options).start().await?;
        // At the end of the program:
        runtime.shutdown(None).await;
        traces.shutdown(Duration::from_secs(5)).await?;
        // guide: end
        Ok(())
    }
    program().await.unwrap();
}
