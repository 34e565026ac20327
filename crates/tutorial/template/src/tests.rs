//! The proof: one test per validation of the suite.

use crate::TemplateStore;
use async_trait::async_trait;
use outlast_conformance::{ProviderFactory, TokioClock};
use outlast_provider::{Clock, Provider};
use std::sync::{Arc, Mutex};

/// Opens empty stores. The provider guide lists the hooks that can be added here.
#[derive(Default)]
struct Factory {
    clock: Mutex<Option<TokioClock>>,
}

#[async_trait]
impl ProviderFactory for Factory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        let clock = TokioClock::start();
        *self.clock.lock().unwrap() = Some(clock);
        Arc::new(TemplateStore::open(Arc::new(clock)))
    }

    fn now_ms(&self) -> u64 {
        self.clock.lock().unwrap().unwrap().now_ms()
    }
}

mod contract {
    use super::Factory;
    outlast_conformance::provider_validation_tests!(paused: Factory::default());
}
