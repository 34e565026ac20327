//! `outlast queue peek`

use crate::args::Common;
use crate::failure::Failure;
use crate::output::{plain, print_list, table};
use crate::queued::Queued;
use crate::store::{self, Intent};
use clap::{Args as ClapArgs, ValueEnum};
use outlast::ExecutionStatus;
use outlast::client::Client;
use outlast::lens::{counted, span};
use outlast::providers::{InstanceQuery, Provider, QueuedItem};
use serde::Serialize;

/// The most instances of one read.
const PAGE: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Queue {
    /// Messages for instances
    Turns,
    /// Activities for workers
    Activities,
}

#[derive(Debug, ClapArgs)]
pub(super) struct PeekArgs {
    #[command(flatten)]
    common: Common,
    /// The queue
    queue: Queue,
    /// The most items to show
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
    /// The most running instances whose items are read
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    scan: u32,
}

pub(super) async fn run(args: PeekArgs) -> Result<(), Failure> {
    let store = store::open_provider(&args.common.store.place()?, Intent::Read).await?;
    let client = Client::new(store.clone());
    let (scan, limit) = (args.scan as usize, args.limit as usize);
    let mut peeked = Peeked { items: Vec::new(), instances_read: 0, instances_left: false, now_ms: 0 };
    let mut ids = unstarted(&*store, scan).await?;
    ids.extend(running(&client, scan, &mut peeked.instances_left).await?);
    for id in ids {
        let Some(pending) = client.pending_work(&id, limit).await? else {
            return Err(Failure::refused("this store does not list the items of its queues"));
        };
        peeked.instances_read += 1;
        peeked.now_ms = pending.now_ms;
        let items = match args.queue {
            Queue::Turns => pending.messages,
            Queue::Activities => pending.activities,
        };
        peeked.items.extend(items.into_iter().map(|item| Item::of(&id, item)));
    }
    peeked.items.sort_by_key(|item| item.queued.visible_ms);
    peeked.items.truncate(limit);
    print_list(args.common.output, &peeked, &peeked.items, None, Peeked::text)
}

/// Ids whose start is in the queue.
async fn unstarted(store: &dyn Provider, most: usize) -> Result<Vec<String>, Failure> {
    match store.as_management_capability() {
        Some(admin) => Ok(admin.list_unstarted(None, most).await?),
        None => Ok(Vec::new()),
    }
}

/// The newest running instances. `more`: whether there are others.
async fn running(client: &Client, most: usize, more: &mut bool) -> Result<Vec<String>, Failure> {
    let mut query = InstanceQuery {
        status: Some(ExecutionStatus::Running.as_str().to_string()),
        limit: u32::try_from(most.min(PAGE)).ok(),
        ..InstanceQuery::default()
    };
    let mut ids = Vec::new();
    loop {
        let page = client.list_instances_page(query.clone()).await?;
        ids.extend(page.instances.into_iter().map(|info| info.instance_id));
        *more = page.next.is_some() || ids.len() > most;
        ids.truncate(most);
        match page.next {
            Some(next) if ids.len() < most => query.after = Some(next),
            _ => return Ok(ids),
        }
    }
}

#[derive(Serialize)]
struct Peeked {
    items: Vec<Item>,
    instances_read: usize,
    /// Whether more instances run than were read.
    instances_left: bool,
    /// The store's time.
    now_ms: u64,
}

#[derive(Serialize)]
struct Item {
    instance: String,
    #[serde(flatten)]
    queued: Queued,
    tag: Option<String>,
    session: Option<String>,
}

impl Item {
    fn of(instance: &str, mut item: QueuedItem) -> Self {
        let (tag, session) = (item.tag.take(), item.session_id.take());
        Self { instance: instance.to_string(), queued: item.into(), tag, session }
    }

    fn row(&self, now_ms: u64) -> Vec<String> {
        let Self { queued, .. } = self;
        let state = match (queued.lease_until_ms, queued.visible_ms.checked_sub(now_ms)) {
            (Some(until), _) => format!("leased, for {}", span(until.saturating_sub(now_ms))),
            (None, Some(left @ 1..)) => format!("delayed, due in {}", span(left)),
            (None, _) => format!("due for {}", span(now_ms.saturating_sub(queued.visible_ms))),
        };
        let text = |text: &Option<String>| text.as_deref().map_or_else(|| "-".to_string(), plain);
        vec![
            plain(&self.instance),
            queued.kind.clone().unwrap_or_else(|| "(does not decode)".to_string()),
            text(&queued.name),
            state,
            queued.deliveries.to_string(),
            text(&self.tag),
            queued.bytes.to_string(),
        ]
    }
}

impl Peeked {
    fn text(&self) -> String {
        let more = match self.instances_left {
            true => format!(
                "The items of {} were read, and more run: --scan reads more.\n",
                counted(self.instances_read, "instance")
            ),
            false => String::new(),
        };
        if self.items.is_empty() {
            return format!("No item waits.\n{more}");
        }
        let rows: Vec<Vec<String>> = self.items.iter().map(|item| item.row(self.now_ms)).collect();
        table(&["INSTANCE", "KIND", "NAME", "STATE", "DELIVERIES", "TAG", "BYTES"], &rows) + &more
    }
}
