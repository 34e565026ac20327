//! Captures the log records of a test, one line each: `LEVEL target: message field=value ..`, with fields sorted by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// Sets a global subscriber that enables every callsite. Without one, tracing disables a callsite for all threads if the first
/// thread that reaches it has no subscriber.
pub(crate) fn enable_every_callsite() {
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry());
}

#[derive(Clone, Default)]
pub(crate) struct Captured(Arc<Mutex<Vec<String>>>);

impl Captured {
    /// Runs `f` and captures the log records of the current thread.
    pub(crate) fn during<T>(&self, f: impl FnOnce() -> T) -> T {
        enable_every_callsite();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(self.clone()), f)
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_string());
    }
}

impl<S: tracing::Subscriber> Layer<S> for Captured {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let message = fields.0.remove("message").unwrap_or_default();
        let mut line = format!("{} {}: {message}", event.metadata().level(), event.metadata().target());
        for (name, value) in &fields.0 {
            line.push_str(&format!(" {name}={value}"));
        }
        self.0.lock().unwrap().push(line);
    }
}
