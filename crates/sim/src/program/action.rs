//! The actions of clients. Together they use every method of the client that writes or waits.

use super::generate;
use super::{NEW, OLD, ORCHESTRATION, Program, TYPED_ORCHESTRATION, child_id};
use outlast_provider::AuditEntry;
use outlast_runtime::{Client, ClientError, Conflict, OrchestrationStatus, Reset, StartReceipt};
use outlast_testkit::rng::Rng;
use std::time::Duration;

/// An instance that a client starts and drives.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    pub(crate) instance: String,
    pub(crate) program: Program,
    /// The actions of the client with their times, in order of time.
    pub(crate) actions: Vec<(u64, Action)>,
    /// Actions after the instance has ended. They must change nothing.
    pub(crate) actions_after_end: Vec<Action>,
}

impl Root {
    /// Has the client start the instance twice if it uses the call that succeeds for an instance that exists: the first start may
    /// still be in the queue when the second one comes.
    pub(crate) fn start_twice(&mut self) {
        if let Some(nth) = self.actions.iter().position(|(_, action)| action.is_plain_start()) {
            self.actions.insert(nth, self.actions[nth].clone());
        }
    }

    /// Leaves out the actions that send to an instance before it starts, and the delay of the start.
    pub(crate) fn send_nothing_early(&mut self) {
        self.actions.retain(|(_, action)| !matches!(action, Action::CancelChild(_)));
        for (_, action) in &mut self.actions {
            if let Action::StartOrSend(_, delay) = action {
                *delay = 0;
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Start,
    StartTyped,
    StartVersioned(String),
    StartVersionedTyped(String),
    /// Starts with the call that leaves a running instance unchanged, perhaps with a first message.
    StartOnce(Option<String>),
    /// [`Action::StartOnce`], typed and delayed; the message is delivered in any case.
    StartOrSend(Option<String>, u64),
    /// [`Action::StartOnce`] under an id that is derived from a token; the instance must be [`token_instance`].
    StartByToken(String),
    Enqueue(String),
    /// By the panicking or the deprecated method.
    EnqueueOtherwise(String),
    Raise(String),
    RaiseOtherwise(String),
    Cancel,
    /// Cancels a child with an explicit id.
    CancelChild(u64),
    Pause,
    Resume,
    /// Repeats the newest execution from an event on, at this many thousandths of its events.
    Reset(u64),
    /// [`Action::Reset`] that cancels running children whose outcome the repetition would not get.
    ResetTree(u64),
    /// Starts an instance with this id from such an event on.
    Fork(String, u64),
    Read(Read),
}

/// A read of a client while an instance runs. Its value depends on the time of the call; the call must succeed.
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

/// The actor of pauses, resumptions, resets and forks.
const OPERATOR: &str = "sim";

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

/// The instance id that is derived from a token.
pub(crate) fn token_instance(token: &str) -> String {
    format!("{ORCHESTRATION}:{token}")
}

/// Whether a queue or event with this name carries typed values.
fn is_typed(name: &str) -> bool {
    name.starts_with("typed")
}

impl Action {
    /// Whether the action is a start that succeeds for an instance that exists.
    pub(crate) fn is_plain_start(&self) -> bool {
        matches!(
            self,
            Self::Start | Self::StartTyped | Self::StartVersioned(_) | Self::StartVersionedTyped(_)
        )
    }

    /// The instance whose events the action copies, and the instance that gets the copy.
    pub(crate) fn branches<'a>(&'a self, root: &'a Root) -> Option<(&'a str, &'a str)> {
        match self {
            Self::Reset(_) | Self::ResetTree(_) => Some((&root.instance, &root.instance)),
            Self::Fork(id, _) => Some((&root.instance, id)),
            _ => None,
        }
    }

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

    /// Performs the action. Every try has its own data, so that a message delivered twice differs from two messages.
    pub(crate) async fn perform(
        &self,
        client: &Client,
        root: &Root,
        sent: u64,
    ) -> Result<ActionResult, ClientError> {
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
            Self::Pause => return pause(client, instance, data).await,
            Self::Resume => return resume(client, instance, data).await,
            Self::Reset(share) => return branch(client, instance, None, *share, false).await,
            Self::ResetTree(share) => return branch(client, instance, None, *share, true).await,
            Self::Fork(id, share) => return branch(client, instance, Some(id), *share, false).await,
            _ => client.cancel_instance(instance, "no longer wanted").await,
        }?;
        Ok(ActionResult::Done)
    }

    async fn start(&self, client: &Client, root: &Root, data: String) -> Result<ActionResult, ClientError> {
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
                return Ok(ActionResult::of(&start.send().await?));
            }
            Self::StartOrSend(first, delay) => {
                let start = client.start_request(TYPED_ORCHESTRATION).instance(instance).input_typed(&state);
                let start = start.version(NEW).delay(Duration::from_millis(*delay));
                let start = first.iter().fold(start, |start, queue| match is_typed(queue) {
                    true => start.with_event_typed(queue, &data),
                    false => start.with_event(queue, data.clone()),
                });
                return Ok(ActionResult::of(&start.if_exists(Conflict::UseExisting).send().await?));
            }
            Self::StartByToken(token) => {
                let start = client.start_request(ORCHESTRATION).idempotency_token(token).input(input);
                return Ok(ActionResult::of(&start.send().await?));
            }
            _ => client.start_orchestration(instance, ORCHESTRATION, input).await,
        }?;
        Ok(ActionResult::Done)
    }
}

/// Pauses an instance, unless it has not started, is cancelled or has ended.
async fn pause(client: &Client, instance: &str, reason: String) -> Result<ActionResult, ClientError> {
    match client.pause_instance(instance, OPERATOR, &reason).await {
        Ok(is_new) => Ok(ActionResult::recorded("instance.pause", instance, reason, is_new)),
        Err(ClientError::InstanceNotFound { .. } | ClientError::InvalidInput { .. }) => {
            Ok(ActionResult::Done)
        }
        Err(error) => Err(error),
    }
}

/// Resumes an instance, unless its orchestration is paused: the operator resumes that.
async fn resume(client: &Client, instance: &str, reason: String) -> Result<ActionResult, ClientError> {
    match client.resume_instance(instance, OPERATOR, &reason).await {
        Ok(was_held) => Ok(ActionResult::recorded("instance.resume", instance, reason, was_held)),
        Err(ClientError::InvalidInput { .. }) => Ok(ActionResult::Done),
        Err(error) => Err(error),
    }
}

/// Resets or forks an instance, unless it has not started, children refuse the reset, or its turns take too long.
async fn branch(
    client: &Client,
    instance: &str,
    fork_id: Option<&str>,
    share: u64,
    cancels_children: bool,
) -> Result<ActionResult, ClientError> {
    let newest = client.list_executions(instance).await?.into_iter().max().unwrap_or(1);
    let events = client.read_execution_history(instance, newest).await?.len() as u64;
    let reset = Reset::to_event(1 + share * events.saturating_sub(1) / 1_000).by(OPERATOR);
    let reset = if cancels_children { reset.cancel_children() } else { reset };
    let done = match fork_id {
        Some(id) => client.fork_instance(instance, id, &reset).await,
        None => client.reset_instance(instance, &reset).await,
    };
    match done {
        Ok(done) => {
            let execution = if fork_id.is_some() { done.execution_id } else { done.execution_id - 1 };
            let source = (instance.to_string(), execution);
            let target = (fork_id.unwrap_or(instance).to_string(), done.execution_id);
            Ok(ActionResult::Copied(Copied { source, target, events: done.kept_events }))
        }
        Err(
            ClientError::InstanceNotFound { .. } | ClientError::InvalidInput { .. } | ClientError::Timeout,
        ) => Ok(ActionResult::Done),
        Err(error) => Err(error),
    }
}

/// A reset or fork that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Copied {
    /// The instance and the execution whose first events were copied.
    pub(crate) source: (String, u64),
    /// The instance and the execution that begins with them.
    pub(crate) target: (String, u64),
    pub(crate) events: usize,
}

/// The result of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ActionResult {
    Done,
    Copied(Copied),
    /// The call started the instance.
    StartedInstance,
    /// The call paused or resumed the instance, or found nothing to change: the audit has this number of such records.
    Recorded(Box<AuditEntry>, u64),
}

impl ActionResult {
    fn of(receipt: &StartReceipt) -> Self {
        if receipt.is_started() { Self::StartedInstance } else { Self::Done }
    }

    /// The reason is that of one try only, so the record is found by it.
    fn recorded(action: &str, instance: &str, reason: String, is_change: bool) -> Self {
        let entry = AuditEntry {
            actor: OPERATOR.to_string(),
            action: action.to_string(),
            target: instance.to_string(),
            reason,
            request: None,
            result: "done".to_string(),
        };
        Self::Recorded(Box::new(entry), u64::from(is_change))
    }
}

/// How long a client waits for a value that may never be set.
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
            // The value is not set, the instance does not exist yet, or its output is not JSON.
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

/// Performs the actions after the end, and checks that they change nothing.
pub(crate) async fn after_the_end(
    client: &Client,
    root: &Root,
    ended: &OrchestrationStatus,
) -> Result<(), String> {
    for (nth, action) in (1_000_000..).zip(&root.actions_after_end) {
        // A retryable error is as good as an answer here: the call may have been made.
        let _ = action.perform(client, root, nth).await;
    }
    if root.actions_after_end.iter().any(Action::is_start) {
        let again = client.start_request(ORCHESTRATION).instance(&root.instance).send().await;
        if again.is_ok_and(|receipt| receipt.started().is_ok()) {
            return Err(format!("I11: '{}' was started again after its end", root.instance));
        }
    }
    match client.get_orchestration_status(&root.instance).await {
        Ok(status) if status != *ended => {
            Err(format!("I11: '{}' ended as {ended:?}, and a later answer is {status:?}", root.instance))
        }
        _ => Ok(()),
    }
}

/// Draws a root: its program and the actions of its client.
pub(crate) fn root(rng: &mut Rng, nth: u64, safety_ms: u64) -> Root {
    let by_token = rng.per_mille(80);
    let token = format!("i{nth}");
    let instance = if by_token { token_instance(&token) } else { token.clone() };
    let program = generate::program(rng, &instance);
    let mut now = rng.below(safety_ms / 2);
    let mut queues = program.messages_needed();
    let start = match rng.below(10) {
        _ if by_token => Action::StartByToken(token),
        0 | 1 => Action::Start,
        2 => Action::StartTyped,
        3 => Action::StartVersioned(rng.pick(&[OLD, NEW]).to_string()),
        4 => Action::StartVersionedTyped(rng.pick(&[OLD, NEW]).to_string()),
        5 | 6 => Action::StartOnce(None),
        7 | 8 => Action::StartOnce(queues.pop()),
        _ => Action::StartOrSend(queues.pop(), rng.below(2_000)),
    };
    let mut actions = vec![(now, start)];
    for queue in queues {
        // All messages of [`Step::Drain`](super::Step::Drain) arrive at once.
        now += if queue == "crowd" { 0 } else { rng.below(1_500) };
        let otherwise = rng.per_mille(200);
        actions.push((now, if otherwise { Action::EnqueueOtherwise(queue) } else { Action::Enqueue(queue) }));
    }
    for name in program.signals_awaited() {
        now += rng.below(1_000);
        actions
            .push((now, if rng.per_mille(200) { Action::RaiseOtherwise(name) } else { Action::Raise(name) }));
    }
    let began = actions[0].0;
    for child in program.cancellable_children() {
        actions.push((began + rng.below(4_000), Action::CancelChild(child)));
    }
    for _ in 0..rng.below(3) {
        actions.push((began + rng.below(5_000), Action::Read(rng.pick(READS))));
    }
    if rng.per_mille(120) {
        actions.push((began + rng.below(10_000), Action::Cancel));
    }
    // Without a draw, so that earlier seeds keep their programs.
    if nth % 5 == 2 {
        let at = began + 300 * (nth % 7);
        actions.extend([(at, Action::Pause), (at + 900 * (1 + nth % 4), Action::Resume)]);
    }
    actions.sort_by_key(|(at, _)| *at);
    let actions_after_end = match rng.per_mille(150) {
        true => vec![
            Action::Raise("e0".to_string()),
            Action::Enqueue("q0".to_string()),
            Action::Cancel,
            Action::Start,
        ],
        false => Vec::new(),
    };
    Root { instance, program, actions, actions_after_end }
}
