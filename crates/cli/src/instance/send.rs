//! `outlast instance signal` and `outlast instance enqueue`

use super::args::{EnqueueArgs, SignalArgs};
use super::must_run;
use crate::failure::Failure;
use crate::output::{plain, print};
use crate::record::{By, record};
use crate::store::{self, Intent};
use outlast::{Client, Event, EventKind};
use serde::Serialize;

pub(super) async fn signal(args: SignalArgs) -> Result<(), Failure> {
    let place = args.common.store.place()?;
    let client = store::open(&place, Intent::Write).await?;
    must_run(&client, &place, &args.instance, "signal").await?;
    let hint = queue_of_this_name(&client, &args.instance, &args.event).await;
    client.raise_event(args.instance.as_str(), args.event.as_str(), args.data.as_str()).await?;
    let by = By { name: args.by, reason: args.reason };
    record(&client, &by, "instance.event", &args.instance).await?;
    let sent = Sent { instance: args.instance, event: Some(args.event), queue: None, hint };
    print(args.common.output, &sent, Sent::text)
}

pub(super) async fn enqueue(args: EnqueueArgs) -> Result<(), Failure> {
    let place = args.common.store.place()?;
    let client = store::open(&place, Intent::Write).await?;
    must_run(&client, &place, &args.instance, "send to").await?;
    let hint = event_of_this_name(&client, &args.instance, &args.queue).await;
    client.enqueue_event(args.instance.as_str(), args.queue.as_str(), args.data.as_str()).await?;
    let by = By { name: args.by, reason: args.reason };
    record(&client, &by, "instance.message", &args.instance).await?;
    let sent = Sent { instance: args.instance, event: None, queue: Some(args.queue), hint };
    print(args.common.output, &sent, Sent::text)
}

/// A hint for an event whose name the instance has only read as that of a queue.
async fn queue_of_this_name(client: &Client, instance: &str, event: &str) -> Option<String> {
    let waits = waits(client, instance).await?;
    let is_queue = waits.contains(&Wait::Queue(event.to_string()));
    (is_queue && !waits.contains(&Wait::Event(event.to_string()))).then(|| {
        format!(
            "The instance reads queue '{event}' and has not waited for an event of this name: `outlast instance enqueue` sends to \
             the queue."
        )
    })
}

/// A hint for a queue whose name the instance has only waited for as that of an event.
async fn event_of_this_name(client: &Client, instance: &str, queue: &str) -> Option<String> {
    let waits = waits(client, instance).await?;
    let is_event = waits.contains(&Wait::Event(queue.to_string()));
    (is_event && !waits.contains(&Wait::Queue(queue.to_string()))).then(|| {
        format!(
            "The instance waits for event '{queue}' and has not read a queue of this name: `outlast instance signal` sends the event."
        )
    })
}

/// A name that an execution has waited for.
#[derive(PartialEq)]
enum Wait {
    Event(String),
    Queue(String),
}

/// The waits of the current execution. `None` if they cannot be read: the message is sent without a hint.
async fn waits(client: &Client, instance: &str) -> Option<Vec<Wait>> {
    let execution = client.get_instance_info(instance).await.ok()?.current_execution_id;
    let history = client.read_execution_history(instance, execution).await.ok()?;
    let wait = |event: Event| match event.kind {
        EventKind::ExternalSubscribed { name } => Some(Wait::Event(name)),
        EventKind::QueueSubscribed { name } => Some(Wait::Queue(name)),
        _ => None,
    };
    Some(history.into_iter().filter_map(wait).collect())
}

/// A stored message. Its data is a payload, and is not printed.
#[derive(Serialize)]
struct Sent {
    instance: String,
    event: Option<String>,
    queue: Option<String>,
    /// A sentence about a name that the instance uses otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Sent {
    fn text(&self) -> String {
        let what = match (&self.event, &self.queue) {
            (Some(event), _) => format!("event '{event}'"),
            (None, queue) => format!("a message to queue '{}'", queue.as_deref().unwrap_or_default()),
        };
        let hint = self.hint.as_ref().map_or(String::new(), |hint| format!("{}\n", plain(hint)));
        format!(
            "Sent {} to instance '{}'. It takes effect at its next turn, in a process that runs it.\n{hint}",
            plain(&what),
            plain(&self.instance)
        )
    }
}
