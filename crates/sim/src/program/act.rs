//! What clients do. Between them these use every operation of the client that writes or waits.

use super::generate;
use super::{NEW, OLD, ORCHESTRATION, Program, TYPED_ORCHESTRATION, child_id};
use outlast_runtime::{Client, ClientError, Conflict, OrchestrationStatus, StartReceipt};
use outlast_testkit::rng::Rng;
use std::time::Duration;

/// A workload that a client drives.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    pub(crate) instance: String,
    pub(crate) program: Program,
    /// What the client does, in order of time.
    pub(crate) acts: Vec<(u64, Act)>,
    /// What it does when the instance has ended: nothing of it may change anything.
    pub(crate) late: Vec<Act>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    Start,
    StartTyped,
    StartVersioned(String),
    StartVersionedTyped(String),
    /// Start by the additive call, which leaves an id alone that is taken; perhaps with a first message.
    StartOnce(Option<String>),
    /// The same, typed and later, and with the message delivered in any case.
    StartOrSend(Option<String>, u64),
    /// The same, under an id that is derived from a token; the instance must be [`token_instance`].
    StartByToken(String),
    Enqueue(String),
    /// By the panicking form or by the old name.
    EnqueueOtherwise(String),
    Raise(String),
    RaiseOtherwise(String),
    Cancel,
    /// Of a child that its parent names.
    CancelChild(u64),
    Read(Read),
}

/// What a client looks at while an instance runs. What it finds depends on the moment; that it is told must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    Status,
    StatusChange,
    Key,
    TypedKey,
    Keys,
    AwaitKey,
    AwaitTypedKey,
    TypedOutput,
    Tree,
}

const READS: &[Read] = &[
    Read::Status,
    Read::StatusChange,
    Read::Key,
    Read::TypedKey,
    Read::Keys,
    Read::AwaitKey,
    Read::AwaitTypedKey,
    Read::TypedOutput,
    Read::Tree,
];

/// The instance that a token stands for.
pub(crate) fn token_instance(token: &str) -> String {
    format!("{ORCHESTRATION}:{token}")
}

/// Queues and events with such names carry typed values.
fn is_typed(name: &str) -> bool {
    name.starts_with("typed")
}

impl Act {
    fn is_start(&self) -> bool {
        matches!(
            self,
            Self::Start
                | Self::StartTyped
                | Self::StartVersioned(_)
                | Self::StartVersionedTyped(_)
                | Self::StartOnce(_)
                | Self::StartOrSend(..)
                | Self::StartByToken(_)
        )
    }

    /// Does it. Every try has data of its own, so that two deliveries of one cannot be taken for one delivery of two.
    pub(crate) async fn perform(&self, client: &Client, root: &Root, sent: u64) -> Result<Done, ClientError> {
        let (instance, data) = (root.instance.as_str(), format!("{}.{sent}", root.instance));
        match self {
            start if start.is_start() => return start.start(client, root, data).await,
            Self::Enqueue(queue) if is_typed(queue) => {
                client.try_enqueue_event_typed(instance, queue, &data).await
            }
            Self::Enqueue(queue) => client.enqueue_event(instance, queue, data).await,
            Self::EnqueueOtherwise(queue) if is_typed(queue) => {
                client.enqueue_event_typed(instance, queue, &data).await
            }
            #[allow(deprecated, reason = "the old name must work as long as it exists")]
            Self::EnqueueOtherwise(queue) => client.raise_event_persistent(instance, queue, data).await,
            Self::Raise(name) if is_typed(name) => client.try_raise_event_typed(instance, name, &data).await,
            Self::RaiseOtherwise(name) if is_typed(name) => {
                client.raise_event_typed(instance, name, &data).await
            }
            Self::Raise(name) | Self::RaiseOtherwise(name) => client.raise_event(instance, name, data).await,
            Self::CancelChild(nth) => {
                client.cancel_instance(child_id(instance, 1, *nth), "no longer wanted").await
            }
            Self::Read(read) => read.perform(client, instance).await,
            _ => client.cancel_instance(instance, "no longer wanted").await,
        }?;
        Ok(Done::Told)
    }

    async fn start(&self, client: &Client, root: &Root, data: String) -> Result<Done, ClientError> {
        let (instance, program) = (root.instance.as_str(), &root.program);
        let (state, input) = (program.state(), program.input());
        match self {
            Self::StartTyped => client.start_orchestration_typed(instance, TYPED_ORCHESTRATION, state).await,
            Self::StartVersioned(version) => {
                client.start_orchestration_versioned(instance, ORCHESTRATION, version, input).await
            }
            Self::StartVersionedTyped(version) => {
                let start =
                    client.start_orchestration_versioned_typed(instance, TYPED_ORCHESTRATION, version, state);
                start.await
            }
            Self::StartOnce(first) => {
                let start = client.start_request(ORCHESTRATION).instance(instance).input(input);
                let start = first.iter().fold(start, |start, queue| match is_typed(queue) {
                    true => start.with_event_typed(queue, &data),
                    false => start.with_event(queue, data.clone()),
                });
                return Ok(Done::of(&start.send().await?));
            }
            Self::StartOrSend(first, delay) => {
                let start = client.start_request(TYPED_ORCHESTRATION).instance(instance).input_typed(&state);
                let start = start.version(NEW).delay(Duration::from_millis(*delay));
                let start = first.iter().fold(start, |start, queue| match is_typed(queue) {
                    true => start.with_event_typed(queue, &data),
                    false => start.with_event(queue, data.clone()),
                });
                return Ok(Done::of(&start.if_exists(Conflict::UseExisting).send().await?));
            }
            Self::StartByToken(token) => {
                let start = client.start_request(ORCHESTRATION).idempotency_token(token).input(input);
                return Ok(Done::of(&start.send().await?));
            }
            _ => client.start_orchestration(instance, ORCHESTRATION, input).await,
        }?;
        Ok(Done::Told)
    }
}

/// What a client knows after its act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    Told,
    /// This very call has started the instance.
    Started,
}

impl Done {
    fn of(receipt: &StartReceipt) -> Self {
        if receipt.is_started() { Self::Started } else { Self::Told }
    }
}

/// How long a client waits for something that may never come.
const PATIENCE: Duration = Duration::from_millis(700);

impl Read {
    async fn perform(self, client: &Client, instance: &str) -> Result<(), ClientError> {
        let read = match self {
            Self::Status => client.get_orchestration_status(instance).await.map(drop),
            Self::StatusChange => {
                let interval = Duration::from_millis(100);
                client.wait_for_status_change(instance, 0, interval, PATIENCE).await.map(drop)
            }
            Self::Key => client.get_kv_value(instance, "k0").await.map(drop),
            Self::TypedKey => client.get_kv_value_typed::<u64>(instance, "k1").await.map(drop),
            Self::Keys => client.get_kv_all_values(instance).await.map(drop),
            Self::AwaitKey => client.wait_for_kv_value(instance, "k0", PATIENCE).await.map(drop),
            Self::AwaitTypedKey => {
                client.wait_for_kv_value_typed::<u64>(instance, "k1", PATIENCE).await.map(drop)
            }
            Self::TypedOutput => {
                client.wait_for_orchestration_typed::<serde_json::Value>(instance, PATIENCE).await.map(drop)
            }
            Self::Tree => client.get_instance_tree(instance).await.map(drop),
        };
        match read {
            // It has not come, it is not there yet, or its output is not JSON.
            Err(
                ClientError::Timeout
                | ClientError::InstanceNotFound { .. }
                | ClientError::InvalidInput { .. }
                | ClientError::Provider(_),
            ) => Ok(()),
            read => read,
        }
    }
}

/// After its end: the instance is as it was, whatever is sent to it.
pub(crate) async fn after_the_end(
    client: &Client,
    root: &Root,
    ended: &OrchestrationStatus,
) -> Result<(), String> {
    for (nth, act) in (1_000_000..).zip(&root.late) {
        // A passing error is as good as an answer here: the call may have been made.
        let _ = act.perform(client, root, nth).await;
    }
    if root.late.iter().any(Act::is_start) {
        let again = client.start_request(ORCHESTRATION).instance(&root.instance).send().await;
        if again.is_ok_and(|receipt| receipt.started().is_ok()) {
            return Err(format!("I11: '{}' was started again after its end", root.instance));
        }
    }
    match client.get_orchestration_status(&root.instance).await {
        Ok(status) if status != *ended => {
            Err(format!("I11: '{}' had ended as {ended:?}, and is {status:?} now", root.instance))
        }
        _ => Ok(()),
    }
}

/// A program, and what its client does.
pub(crate) fn root(rng: &mut Rng, nth: u64, safety_ms: u64) -> Root {
    let by_token = rng.per_mille(80);
    let token = format!("i{nth}");
    let instance = if by_token { token_instance(&token) } else { token.clone() };
    let program = generate::program(rng, &instance);
    let mut now = rng.below(safety_ms / 2);
    let mut queues = program.messages_needed();
    let start = match rng.below(10) {
        _ if by_token => Act::StartByToken(token),
        0 | 1 => Act::Start,
        2 => Act::StartTyped,
        3 => Act::StartVersioned(rng.pick(&[OLD, NEW]).to_string()),
        4 => Act::StartVersionedTyped(rng.pick(&[OLD, NEW]).to_string()),
        5 | 6 => Act::StartOnce(None),
        7 | 8 => Act::StartOnce(queues.pop()),
        _ => Act::StartOrSend(queues.pop(), rng.below(2_000)),
    };
    let mut acts = vec![(now, start)];
    for queue in queues {
        // A crowd comes all at once.
        now += if queue == "crowd" { 0 } else { rng.below(1_500) };
        let otherwise = rng.per_mille(200);
        acts.push((now, if otherwise { Act::EnqueueOtherwise(queue) } else { Act::Enqueue(queue) }));
    }
    for name in program.signals_awaited() {
        now += rng.below(1_000);
        acts.push((now, if rng.per_mille(200) { Act::RaiseOtherwise(name) } else { Act::Raise(name) }));
    }
    let began = acts[0].0;
    for child in program.cancellable_children() {
        acts.push((began + rng.below(4_000), Act::CancelChild(child)));
    }
    for _ in 0..rng.below(3) {
        acts.push((began + rng.below(5_000), Act::Read(rng.pick(READS))));
    }
    if rng.per_mille(120) {
        acts.push((began + rng.below(10_000), Act::Cancel));
    }
    acts.sort_by_key(|(at, _)| *at);
    let late = match rng.per_mille(150) {
        true => vec![Act::Raise("e0".to_string()), Act::Enqueue("q0".to_string()), Act::Cancel, Act::Start],
        false => Vec::new(),
    };
    Root { instance, program, acts, late }
}
