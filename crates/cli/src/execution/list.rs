//! `outlast execution list`

use crate::args::Common;
use crate::failure::Failure;
use crate::instance::unknown;
use crate::output::{print_list, table};
use crate::store::{self, Intent};
use clap::Args as ClapArgs;
use outlast::client::Client;
use outlast::lens::{counted, moment, span};
use outlast::providers::ExecutionInfo;
use outlast::runtime::OrchestrationStatus;
use serde::Serialize;

#[derive(Debug, ClapArgs)]
pub(super) struct ListArgs {
    #[command(flatten)]
    common: Common,
    /// The instance's id
    instance: String,
    /// The most executions to list
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
}

pub(super) async fn run(args: ListArgs) -> Result<(), Failure> {
    let place = args.common.store.place()?;
    let client = store::open(&place, Intent::Read).await?;
    if client.get_orchestration_status(&args.instance).await? == OrchestrationStatus::NotFound {
        return Err(unknown(&args.instance, &place));
    }
    let page = Page::read(&client, args.instance, args.limit as usize).await?;
    print_list(args.common.output, &page, &page.executions, None, Page::text)
}

#[derive(Serialize)]
struct Page {
    instance: String,
    executions: Vec<Listed>,
    /// Older executions beyond `--limit`.
    left_out: usize,
}

#[derive(Serialize)]
struct Listed {
    execution: u64,
    status: String,
    started_ms: u64,
    ended_ms: Option<u64>,
    events: usize,
}

impl Page {
    async fn read(client: &Client, instance: String, limit: usize) -> Result<Self, Failure> {
        let kept = client.list_executions(&instance).await?;
        let mut executions = Vec::new();
        for execution in kept.iter().rev().take(limit) {
            executions.push(Listed::from(client.get_execution_info(&instance, *execution).await?));
        }
        Ok(Self { instance, executions, left_out: kept.len().saturating_sub(limit) })
    }

    fn text(&self) -> String {
        let rows: Vec<Vec<String>> = self.executions.iter().map(Listed::row).collect();
        let mut text =
            table(&["EXECUTION", "STATUS", "STARTED (UTC)", "ENDED (UTC)", "TOOK", "EVENTS"], &rows);
        if self.left_out > 0 {
            text.push_str(&format!(
                "{} not shown: --limit shows more\n",
                counted(self.left_out, "older execution")
            ));
        }
        text
    }
}

impl From<ExecutionInfo> for Listed {
    fn from(info: ExecutionInfo) -> Self {
        Self {
            execution: info.execution_id,
            status: info.status,
            started_ms: info.started_at,
            ended_ms: info.completed_at,
            events: info.event_count,
        }
    }
}

impl Listed {
    fn row(&self) -> Vec<String> {
        let none = || "-".to_string();
        vec![
            self.execution.to_string(),
            self.status.clone(),
            moment(self.started_ms),
            self.ended_ms.map_or_else(none, moment),
            self.ended_ms.map_or_else(none, |ended| span(ended.saturating_sub(self.started_ms))),
            self.events.to_string(),
        ]
    }
}
