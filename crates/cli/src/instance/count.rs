//! `outlast instance count`

use super::args::CountArgs;
use crate::failure::Failure;
use crate::output::{print, table};
use crate::store::{self, Intent};
use outlast::ExecutionStatus;
use outlast::client::Client;
use outlast::providers::InstanceQuery;
use serde::Serialize;

/// The most instances of one read.
const PAGE: u32 = 1_000;

pub(super) async fn run(args: CountArgs) -> Result<(), Failure> {
    let client = store::open(&args.common.store.place()?, Intent::Read).await?;
    let counts = match (&args.name, &args.prefix) {
        (None, None) => Counts::of_store(&client).await?,
        _ => Counts::of_matching(&client, args.name, args.prefix).await?,
    };
    print(args.common.output, &counts, Counts::text)
}

/// The instances by the status of their current execution.
#[derive(Default, Serialize)]
struct Counts {
    total: u64,
    running: u64,
    completed: u64,
    failed: u64,
    /// Instances between two executions, and damaged ones.
    other: u64,
}

impl Counts {
    /// The store counts all instances in one read.
    async fn of_store(client: &Client) -> Result<Self, Failure> {
        let totals = client.get_system_metrics().await?;
        let (total, running) = (totals.total_instances, totals.running_instances);
        let (completed, failed) = (totals.completed_instances, totals.failed_instances);
        let other = total.saturating_sub(running + completed + failed);
        Ok(Self { total, running, completed, failed, other })
    }

    /// The stores do not count instances that match a condition: the command reads their rows.
    async fn of_matching(
        client: &Client,
        name: Option<String>,
        prefix: Option<String>,
    ) -> Result<Self, Failure> {
        let mut counts = Self::default();
        let mut query = InstanceQuery {
            orchestration_name: name,
            id_prefix: prefix,
            limit: Some(PAGE),
            ..InstanceQuery::default()
        };
        loop {
            let page = client.list_instances_page(query.clone()).await?;
            page.instances.iter().for_each(|info| counts.add(&info.status));
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(counts),
            }
        }
    }

    fn add(&mut self, status: &str) {
        self.total += 1;
        *match ExecutionStatus::from_text(status) {
            Some(ExecutionStatus::Running) => &mut self.running,
            Some(ExecutionStatus::Completed) => &mut self.completed,
            Some(ExecutionStatus::Failed) => &mut self.failed,
            _ => &mut self.other,
        } += 1;
    }

    fn text(&self) -> String {
        let mut rows =
            vec![("Running", self.running), ("Completed", self.completed), ("Failed", self.failed)];
        rows.extend(Some(("other", self.other)).filter(|(_, count)| *count > 0));
        rows.push(("total", self.total));
        let rows: Vec<Vec<String>> =
            rows.into_iter().map(|(status, count)| vec![status.to_string(), count.to_string()]).collect();
        table(&["STATUS", "INSTANCES"], &rows)
    }
}
