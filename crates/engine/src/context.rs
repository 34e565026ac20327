//! The handle through which orchestration code makes durable calls. The calls are in `op/`.

use crate::state::{State, TraceLine};
use outlast_model::codec::Codec;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Orchestration code makes its durable calls through this handle. Clones share one state, so that several async blocks can
/// hold a handle.
#[derive(Clone)]
pub struct OrchestrationContext(Arc<Shared>);

struct Shared {
    identity: Identity,
    /// Empty means the default. Every typed call reads it, so it is not behind the lock.
    codec: OnceLock<Codec>,
    state: Mutex<State>,
}

/// The execution that runs, and its registered function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) instance: String,
    pub(crate) execution_id: u64,
    pub(crate) name: String,
    pub(crate) version: String,
}

impl OrchestrationContext {
    pub(crate) fn new(identity: Identity, state: State) -> Self {
        Self(Arc::new(Shared { identity, codec: OnceLock::new(), state: Mutex::new(state) }))
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.0.identity
    }

    /// The codec for typed values.
    pub fn codec(&self) -> Codec {
        self.0.codec.get().copied().unwrap_or_default()
    }

    /// Sets the codec, unless it is set.
    pub(crate) fn set_codec(&self, codec: Codec) {
        let _ = self.0.codec.set(codec);
    }

    /// A poisoned lock is entered: orchestration code panics while the lock is free, or leaves whole values behind.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of the instance.
    pub fn instance_id(&self) -> String {
        self.identity().instance.clone()
    }

    /// The id of the execution; continue-as-new starts the next one.
    pub fn execution_id(&self) -> u64 {
        self.identity().execution_id
    }

    /// Name under which the orchestration is registered.
    pub fn orchestration_name(&self) -> String {
        self.identity().name.clone()
    }

    /// Version of the registered function that runs.
    pub fn orchestration_version(&self) -> String {
        self.identity().version.clone()
    }

    /// Whether the code runs because of an event that was stored before this turn. A decision that depends on it is not
    /// deterministic.
    pub fn is_replaying(&self) -> bool {
        self.lock().replaying
    }

    /// Always false: use `tracing`'s own filters.
    pub fn is_logging_enabled(&self) -> bool {
        false
    }

    /// Logs a line, unless the code is being replayed. `level` is INFO, WARN, ERROR or DEBUG in any case; anything else
    /// is logged as TRACE.
    pub fn trace(&self, level: impl Into<String>, message: impl Into<String>) {
        self.trace_line(TraceLine { level: level.into(), message: message.into(), without_quote: None });
    }

    /// Logs a line that quotes an error. `without_quote` is the line for logs that must not hold payloads.
    pub(crate) fn trace_quoting(&self, message: String, without_quote: String) {
        self.trace_line(TraceLine { level: "WARN".to_string(), message, without_quote: Some(without_quote) });
    }

    fn trace_line(&self, line: TraceLine) {
        let mut state = self.lock();
        if !state.replaying {
            state.traces.push(line);
        }
    }

    /// Logs a line at INFO, unless the code is being replayed.
    pub fn trace_info(&self, message: impl Into<String>) {
        self.trace("INFO", message);
    }

    /// Logs a line at WARN, unless the code is being replayed.
    pub fn trace_warn(&self, message: impl Into<String>) {
        self.trace("WARN", message);
    }

    /// Logs a line at ERROR, unless the code is being replayed.
    pub fn trace_error(&self, message: impl Into<String>) {
        self.trace("ERROR", message);
    }

    /// Logs a line at DEBUG, unless the code is being replayed.
    pub fn trace_debug(&self, message: impl Into<String>) {
        self.trace("DEBUG", message);
    }
}
