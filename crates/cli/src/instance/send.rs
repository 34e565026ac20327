//! `outlast instance signal` and `outlast instance enqueue`

use super::args::{EnqueueArgs, SignalArgs};
use super::must_run;
use crate::failure::Failure;
use crate::output::{plain, print};
use crate::record::{By, record};
use crate::store::{self, Intent};
use serde::Serialize;

pub(super) async fn signal(args: SignalArgs) -> Result<(), Failure> {
    let place = args.common.store.place()?;
    let client = store::open(&place, Intent::Write).await?;
    must_run(&client, &place, &args.instance, "signal").await?;
    client.raise_event(args.instance.as_str(), args.event.as_str(), args.data.as_str()).await?;
    let by = By { name: args.by, reason: args.reason };
    record(&client, &by, "instance.event", &args.instance).await?;
    let sent = Sent { instance: args.instance, event: Some(args.event), queue: None };
    print(args.common.output, &sent, Sent::text)
}

pub(super) async fn enqueue(args: EnqueueArgs) -> Result<(), Failure> {
    let place = args.common.store.place()?;
    let client = store::open(&place, Intent::Write).await?;
    must_run(&client, &place, &args.instance, "send to").await?;
    client.enqueue_event(args.instance.as_str(), args.queue.as_str(), args.data.as_str()).await?;
    let by = By { name: args.by, reason: args.reason };
    record(&client, &by, "instance.message", &args.instance).await?;
    let sent = Sent { instance: args.instance, event: None, queue: Some(args.queue) };
    print(args.common.output, &sent, Sent::text)
}

/// A stored message. Its data is a payload, and is not printed.
#[derive(Serialize)]
struct Sent {
    instance: String,
    event: Option<String>,
    queue: Option<String>,
}

impl Sent {
    fn text(&self) -> String {
        let what = match (&self.event, &self.queue) {
            (Some(event), _) => format!("event '{event}'"),
            (None, queue) => format!("a message to queue '{}'", queue.as_deref().unwrap_or_default()),
        };
        format!(
            "Sent {} to instance '{}'. It takes effect at its next turn, in a process that runs it.\n",
            plain(&what),
            plain(&self.instance)
        )
    }
}
