//! The context of a running activity: its identity, cancellation, logging and a client.

use crate::client::Client;
use outlast_model::codec::Codec;
use outlast_model::limits::Limits;
use outlast_provider::Provider;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio_util::sync::CancellationToken;

/// The identity of one delivery of a scheduled activity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ActivityIdentity {
    pub(crate) instance_id: String,
    pub(crate) execution_id: u64,
    pub(crate) orchestration_name: String,
    pub(crate) orchestration_version: String,
    pub(crate) activity_name: String,
    /// Event id of the `ActivityScheduled`.
    pub(crate) activity_id: u64,
    pub(crate) worker_id: String,
    pub(crate) session_id: Option<String>,
    pub(crate) tag: Option<String>,
    /// The number of this delivery, from 1.
    pub(crate) deliveries: u32,
    /// Counts reported failures.
    pub(crate) failures: u32,
}

/// Identity, cancellation and logging of a running activity. Clones are handles to the same delivery.
#[derive(Clone)]
pub struct ActivityContext {
    identity: Arc<ActivityIdentity>,
    idempotency_key: Arc<str>,
    cancellation: CancellationToken,
    store: Arc<dyn Provider>,
    /// The end of the lease in milliseconds since the epoch; 0 if it is not known. Renewals advance it.
    deadline_ms: Arc<AtomicU64>,
    codec: Codec,
    limits: Arc<Limits>,
    traceparent: Option<Arc<str>>,
}

impl ActivityContext {
    pub(crate) fn new(
        identity: ActivityIdentity,
        cancellation: CancellationToken,
        store: Arc<dyn Provider>,
        deadline_ms: Arc<AtomicU64>,
    ) -> Self {
        let idempotency_key =
            format!("{}:{}:{}", identity.instance_id, identity.execution_id, identity.activity_id).into();
        Self {
            identity: Arc::new(identity),
            idempotency_key,
            cancellation,
            store,
            deadline_ms,
            limits: Arc::default(),
            codec: Codec::default(),
            traceparent: None,
        }
    }

    /// Sets the codec and limits of the runtime, which `get_client` passes on.
    pub(crate) fn with_settings(self, codec: Codec, limits: Arc<Limits>) -> Self {
        Self { codec, limits, ..self }
    }

    pub(crate) fn with_traceparent(self, traceparent: Option<String>) -> Self {
        Self { traceparent: traceparent.map(Arc::from), ..self }
    }

    pub(crate) fn shared_traceparent(&self) -> Option<Arc<str>> {
        self.traceparent.clone()
    }

    /// A context for unit tests that call an activity as a function: the instance is `test`, and the store is empty.
    #[cfg(feature = "memory")]
    pub fn for_test() -> Self {
        let text = |text: &str| text.to_string();
        let identity = ActivityIdentity {
            instance_id: text("test"),
            execution_id: 1,
            orchestration_name: text("test"),
            orchestration_version: text("1.0.0"),
            activity_name: text("test"),
            activity_id: 2,
            worker_id: text("test"),
            session_id: None,
            tag: None,
            deliveries: 1,
            failures: 0,
        };
        let store = Arc::new(outlast_memory::MemoryProvider::new());
        Self::new(identity, CancellationToken::new(), store, Arc::default())
    }

    /// The limits of the runtime.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The codec for typed values.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// The instance that scheduled the activity.
    pub fn instance_id(&self) -> &str {
        &self.identity.instance_id
    }

    /// The execution that scheduled the activity.
    pub fn execution_id(&self) -> u64 {
        self.identity.execution_id
    }

    /// Name of the orchestration that scheduled the activity; `unknown` if it could not be read.
    pub fn orchestration_name(&self) -> &str {
        &self.identity.orchestration_name
    }

    /// Version of the orchestration that scheduled the activity; `unknown` if it could not be read.
    pub fn orchestration_version(&self) -> &str {
        &self.identity.orchestration_version
    }

    /// The name under which the activity was scheduled.
    pub fn activity_name(&self) -> &str {
        &self.identity.activity_name
    }

    /// The worker that runs the activity: `work-{slot}-{node}`.
    pub fn worker_id(&self) -> &str {
        &self.identity.worker_id
    }

    /// The session of the activity.
    pub fn session_id(&self) -> Option<&str> {
        self.identity.session_id.as_deref()
    }

    /// The tag of the activity.
    pub fn tag(&self) -> Option<&str> {
        self.identity.tag.as_deref()
    }

    /// The number of this delivery, counted from 1. The store delivers an activity again if its worker ends or loses the lease, and
    /// for each retry of `#[outlast::activity(retry = ..)]`. A retry policy of a call schedules a new activity, whose deliveries
    /// count from 1.
    pub fn attempt(&self) -> u32 {
        self.identity.deliveries
    }

    /// The number of runs of this activity that failed and asked for another one ([`Attempt::Retry`](crate::Attempt::Retry)). Runs
    /// that ended with their process do not count, unless the store keeps no failures.
    pub fn failures(&self) -> u32 {
        self.identity.failures
    }

    /// A key that is the same for every delivery of this scheduled activity and unique among the activities of the store. Pass it to
    /// the services that the activity calls, so that a second delivery has no second effect. An instance that is deleted and started
    /// again with the same id repeats its keys.
    pub fn idempotency_key(&self) -> &str {
        &self.idempotency_key
    }

    /// The trace context of this delivery as a W3C `traceparent`, to be sent with the requests that the activity makes. `None` if the
    /// runtime makes no traces ([`RuntimeOptions::observer`](crate::RuntimeOptions::observer)).
    pub fn traceparent(&self) -> Option<&str> {
        self.traceparent.as_deref()
    }

    /// The end of the lease, in milliseconds since the epoch by the runtime's clock. After this time another worker may run the
    /// same activity. The runtime renews the lease, which advances the value. `None` if it is not known.
    pub fn deadline_ms(&self) -> Option<u64> {
        match self.deadline_ms.load(Ordering::Relaxed) {
            0 => None,
            deadline => Some(deadline),
        }
    }

    /// Whether the activity is cancelled: the orchestration has dropped it or ended, or the lease is lost. The result of a cancelled
    /// activity is discarded.
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }

    /// Waits until the activity is cancelled, see [`ActivityContext::is_cancelled`].
    pub async fn cancelled(&self) {
        self.cancellation.cancelled().await;
    }

    /// The token of [`ActivityContext::cancelled`], for tasks that the activity starts.
    pub fn cancellation_token(&self) -> CancellationToken {
        self.cancellation.clone()
    }

    /// A client of the same store.
    pub fn get_client(&self) -> Client {
        Client::new(self.store.clone()).with_codec(self.codec).with_shared_limits(Arc::clone(&self.limits))
    }
}

/// Logs one event on the target `duroxide::activity`. A macro, because the level of a `tracing` event is a constant.
macro_rules! trace {
    ($level:ident, $context:expr, $message:expr) => {
        tracing::$level!(
            target: "duroxide::activity",
            instance_id = %$context.identity.instance_id,
            execution_id = $context.identity.execution_id,
            orchestration_name = %$context.identity.orchestration_name,
            orchestration_version = %$context.identity.orchestration_version,
            activity_name = %$context.identity.activity_name,
            activity_id = $context.identity.activity_id,
            worker_id = %$context.identity.worker_id,
            "{}",
            $message
        )
    };
}

/// Logging. Every delivery logs again.
impl ActivityContext {
    /// Logs at INFO.
    pub fn trace_info(&self, message: impl Into<String>) {
        trace!(info, self, message.into());
    }

    /// Logs at WARN.
    pub fn trace_warn(&self, message: impl Into<String>) {
        trace!(warn, self, message.into());
    }

    /// Logs at ERROR.
    pub fn trace_error(&self, message: impl Into<String>) {
        trace!(error, self, message.into());
    }

    /// Logs at DEBUG.
    pub fn trace_debug(&self, message: impl Into<String>) {
        trace!(debug, self, message.into());
    }
}

impl fmt::Debug for ActivityContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let identity = &*self.identity;
        f.debug_struct("ActivityContext")
            .field("instance_id", &identity.instance_id)
            .field("execution_id", &identity.execution_id)
            .field("orchestration_name", &identity.orchestration_name)
            .field("orchestration_version", &identity.orchestration_version)
            .field("activity_name", &identity.activity_name)
            .field("activity_id", &identity.activity_id)
            .field("worker_id", &identity.worker_id)
            .field("attempt", &identity.deliveries)
            .field("cancellation_token", &self.cancellation)
            .field("store", &"<Provider>")
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captured::Captured;
    use outlast_memory::MemoryProvider;

    fn identity() -> ActivityIdentity {
        ActivityIdentity {
            instance_id: "order:7".into(),
            execution_id: 2,
            orchestration_name: "Order".into(),
            orchestration_version: "1.2.0".into(),
            activity_name: "Charge".into(),
            activity_id: 5,
            worker_id: "work-0-abcd".into(),
            session_id: Some("secret-session".into()),
            tag: Some("secret-tag".into()),
            deliveries: 3,
            failures: 2,
        }
    }

    fn context(deadline_ms: &Arc<AtomicU64>) -> ActivityContext {
        let store = Arc::new(MemoryProvider::new());
        ActivityContext::new(identity(), CancellationToken::new(), store, deadline_ms.clone())
    }

    #[test]
    fn accessors_return_the_identity() {
        let context = context(&Arc::default());
        assert_eq!(
            (context.instance_id(), context.execution_id(), context.activity_name(), context.worker_id()),
            ("order:7", 2, "Charge", "work-0-abcd")
        );
        assert_eq!((context.orchestration_name(), context.orchestration_version()), ("Order", "1.2.0"));
        assert_eq!((context.session_id(), context.tag()), (Some("secret-session"), Some("secret-tag")));
        assert_eq!((context.attempt(), context.failures(), context.idempotency_key()), (3, 2, "order:7:2:5"));
    }

    #[test]
    fn the_deadline_follows_renewals() {
        let lease = Arc::new(AtomicU64::new(0));
        let context = context(&lease);
        assert_eq!(context.deadline_ms(), None);
        lease.store(1_000, Ordering::Relaxed);
        assert_eq!(context.clone().deadline_ms(), Some(1_000));
    }

    #[tokio::test]
    async fn cancellation_reaches_clones_and_tokens() {
        let context = context(&Arc::default());
        let (clone, token) = (context.clone(), context.cancellation_token());
        assert!(!clone.is_cancelled());
        context.cancellation.cancel();
        clone.cancelled().await;
        assert!(clone.is_cancelled() && token.is_cancelled());
    }

    #[test]
    fn debug_shows_identity_without_session_tag_and_store() {
        let shown = format!("{:?}", context(&Arc::default()));
        for part in ["order:7", "Charge", "work-0-abcd", "cancellation_token", "<Provider>"] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        assert!(!shown.contains("secret"), "{shown}");
    }

    #[test]
    fn traces_carry_the_fields_of_the_contract() {
        let captured = Captured::default();
        captured.during(|| {
            let context = context(&Arc::default());
            context.trace_info("one");
            context.trace_warn("two");
            context.trace_error(String::from("three {}"));
            context.trace_debug("four");
        });
        let fields = "activity_id=5 activity_name=Charge execution_id=2 instance_id=order:7 orchestration_name=Order \
                      orchestration_version=1.2.0 worker_id=work-0-abcd";
        let expected = [("INFO", "one"), ("WARN", "two"), ("ERROR", "three {}"), ("DEBUG", "four")]
            .map(|(level, message)| format!("{level} duroxide::activity: {message} {fields}"));
        assert_eq!(captured.lines(), expected);
    }
}
