//! `outlast queue`: the queues of a store.

mod peek;

use crate::args::Common;
use crate::failure::Failure;
use crate::output::{print, table};
use crate::store::{self, Intent};
use clap::{Args as ClapArgs, Subcommand};
use outlast::providers::QueueBacklog;
use serde::Serialize;

#[derive(Debug, ClapArgs)]
pub(crate) struct QueueArgs {
    #[command(subcommand)]
    command: QueueCommand,
}

#[derive(Debug, Subcommand)]
enum QueueCommand {
    /// Count the waiting items of both queues, and the held instances
    ///
    /// Items under a live lease are not counted. Delayed items are timers, delayed starts, and activities that wait for their next try.
    Depths(DepthsArgs),
    /// Show the items of a queue, the longest waiting first, without payloads
    ///
    /// The command reads items by instance: those of the newest running instances, up to --scan of them, and of
    /// instances whose start is queued. The last line says whether there are more instances.
    Peek(peek::PeekArgs),
}

#[derive(Debug, ClapArgs)]
struct DepthsArgs {
    #[command(flatten)]
    common: Common,
}

pub(crate) async fn run(args: QueueArgs) -> Result<(), Failure> {
    match args.command {
        QueueCommand::Depths(args) => depths(args).await,
        QueueCommand::Peek(args) => peek::run(args).await,
    }
}

async fn depths(args: DepthsArgs) -> Result<(), Failure> {
    let client = store::open(&args.common.store.place()?, Intent::Read).await?;
    let gauges = client.get_gauges().await?;
    let held = client.count_held().await?;
    let depths = Depths {
        turns: Depth::of(gauges.orchestrator_queue, gauges.orchestrator_backlog),
        activities: Depth::of(gauges.worker_queue, gauges.worker_backlog),
        held_instances: held.map(|held| held.instances),
        held_messages: held.map(|held| held.messages),
    };
    print(args.common.output, &depths, Depths::text)
}

#[derive(Serialize)]
struct Depths {
    turns: Depth,
    activities: Depth,
    /// Null if the store cannot hold instances.
    held_instances: Option<u64>,
    held_messages: Option<u64>,
}

#[derive(Serialize)]
struct Depth {
    waiting: u64,
    /// Null if the store does not tell due and delayed items apart.
    due: Option<u64>,
    delayed: Option<u64>,
}

impl Depth {
    fn of(waiting: u64, backlog: Option<QueueBacklog>) -> Self {
        Self {
            waiting,
            due: backlog.map(|backlog| backlog.due),
            delayed: backlog.map(|backlog| backlog.delayed),
        }
    }

    fn row(&self, queue: &str) -> Vec<String> {
        let number =
            |number: Option<u64>| number.map_or_else(|| "-".to_string(), |number| number.to_string());
        vec![queue.to_string(), self.waiting.to_string(), number(self.due), number(self.delayed)]
    }
}

impl Depths {
    fn text(&self) -> String {
        let rows = [self.turns.row("turns"), self.activities.row("activities")];
        let held = match (self.held_instances, self.held_messages) {
            (Some(instances), messages) if instances > 0 => {
                format!("Held instances: {instances}, waiting messages: {}\n", messages.unwrap_or_default())
            }
            _ => String::new(),
        };
        table(&["QUEUE", "WAITING", "DUE", "DELAYED"], &rows) + &held
    }
}
