//! `outlast audit`: the changes that operators have made.

use crate::args::Common;
use crate::failure::Failure;
use crate::output::{plain, print_list, table};
use crate::store::{self, Intent};
use clap::{Args as ClapArgs, Subcommand};
use outlast::client::Client;
use outlast::lens::moment;
use outlast::providers::AuditRecord;
use serde::Serialize;

/// The most records of one read while the command filters them.
const SCAN: usize = 500;

#[derive(Debug, ClapArgs)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    command: AuditCommand,
}

const EXAMPLES: &str = "Examples:
  outlast audit list --store shop.db
  outlast audit list --target order-17 --store shop.db -o jsonl";

#[derive(Debug, Subcommand)]
enum AuditCommand {
    /// List the records of the audit, newest first
    #[command(after_help = EXAMPLES)]
    List(ListArgs),
}

#[derive(Debug, ClapArgs)]
struct ListArgs {
    #[command(flatten)]
    common: Common,
    /// Only records of this target: the id of an instance, or the name of an orchestration
    #[arg(long, value_name = "ID")]
    target: Option<String>,
    /// Only records of changes by this person
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// The most records to list
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Only records with lower numbers
    #[arg(long, value_name = "NUMBER")]
    before: Option<u64>,
}

pub(crate) async fn run(args: AuditArgs) -> Result<(), Failure> {
    let AuditCommand::List(args) = args.command;
    let client = store::open(&args.common.store.clone().place()?, Intent::Read).await?;
    let page = Page::read(&client, &args).await?;
    let next = page.next.map(|next| next.to_string());
    print_list(args.common.output, &page, &page.records, next.as_deref(), Page::text)
}

#[derive(Serialize)]
struct Page {
    records: Vec<Listed>,
    /// For `--before`; null at the end.
    next: Option<u64>,
}

#[derive(Serialize)]
struct Listed {
    number: u64,
    at_ms: u64,
    by: String,
    action: String,
    target: String,
    reason: String,
    request: Option<String>,
    result: String,
}

impl Page {
    async fn read(client: &Client, args: &ListArgs) -> Result<Self, Failure> {
        let wanted = usize::from(args.limit);
        let is_everything = args.target.is_none() && args.by.is_none();
        let (mut before, mut page) = (args.before, Self { records: Vec::new(), next: None });
        loop {
            // One more than wanted tells whether there are more.
            let limit = if is_everything { wanted + 1 } else { SCAN };
            let Some(records) = client.audit_page(before, limit).await? else {
                return Err(Failure::refused("this store keeps no audit"));
            };
            let is_last = records.len() < limit;
            before = records.last().map(|record| record.id);
            for record in records.into_iter().filter(|record| args.takes(record)) {
                if page.records.len() == wanted {
                    page.next = page.records.last().map(|last| last.number);
                    return Ok(page);
                }
                page.records.push(Listed::from(record));
            }
            if is_last {
                return Ok(page);
            }
        }
    }

    fn text(&self) -> String {
        if self.records.is_empty() {
            return "The audit has no records that match.\n".to_string();
        }
        let rows: Vec<Vec<String>> = self.records.iter().map(Listed::row).collect();
        let next = match self.next {
            Some(next) => format!("There are more: go on with --before {next}\n"),
            None => String::new(),
        };
        table(&["NUMBER", "TIME (UTC)", "BY", "ACTION", "TARGET", "RESULT", "REASON"], &rows) + &next
    }
}

impl ListArgs {
    fn takes(&self, record: &AuditRecord) -> bool {
        self.target.as_ref().is_none_or(|target| *target == record.entry.target)
            && self.by.as_ref().is_none_or(|by| *by == record.entry.actor)
    }
}

impl From<AuditRecord> for Listed {
    fn from(record: AuditRecord) -> Self {
        let entry = record.entry;
        Self {
            number: record.id,
            at_ms: record.at_ms,
            by: entry.actor,
            action: entry.action,
            target: entry.target,
            reason: entry.reason,
            request: entry.request,
            result: entry.result,
        }
    }
}

impl Listed {
    fn row(&self) -> Vec<String> {
        let texts = [&self.by, &self.action, &self.target, &self.result, &self.reason];
        let mut row = vec![self.number.to_string(), moment(self.at_ms)];
        row.extend(texts.iter().map(|text| plain(text)));
        row
    }
}
