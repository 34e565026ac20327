//! `outlast instance history --follow`: each event once, also across executions.

use super::args::HistoryArgs;
use super::history::{COLUMNS, row, visible};
use super::{deleted, execution_id};
use crate::args::Format;
use crate::failure::Failure;
use crate::follow::{Step, check_format, follow};
use crate::output::{Columns, line, plain, write};
use crate::store::{self, Intent};
use outlast::ExecutionStatus;
use outlast::client::Client;
use outlast::runtime::OrchestrationStatus;

/// The most events of one read.
const PAGE: usize = 500;

/// The first widths of the columns: later events are not known when the first line is printed.
const WIDTHS: [usize; 4] = [4, 23, 27, 4];

pub(super) async fn run(args: HistoryArgs) -> Result<(), Failure> {
    check_format(args.common.output)?;
    let place = args.common.store.place()?;
    let store = store::open_provider(&place, Intent::Read).await?;
    let client = Client::new(store.clone());
    let execution = execution_id(&client, &place, &args.instance, args.execution).await?;
    let mut followed = Followed {
        client,
        instance: args.instance.clone(),
        execution,
        after: 0,
        is_titled: false,
        columns: Columns::new(&COLUMNS, &WIDTHS),
        only_this: args.execution.is_some(),
        payloads: args.payloads,
        format: args.common.output,
    };
    follow(&*store, Some(&args.instance), async || followed.step().await).await
}

/// The position in the history of an instance up to which events are printed.
struct Followed {
    client: Client,
    instance: String,
    execution: u64,
    after: u64,
    /// Whether the title of the execution is printed.
    is_titled: bool,
    columns: Columns,
    /// Whether the command follows one execution only.
    only_this: bool,
    payloads: bool,
    format: Format,
}

impl Followed {
    /// Prints the events that are new. The end is read before the events, and the executions are read between both: the events of an
    /// execution that has ended or has a successor do not change, so that none is missed.
    async fn step(&mut self) -> Result<Step, Failure> {
        let end = self.end().await?;
        let kept = self.client.list_executions(&self.instance).await?;
        self.print_new().await?;
        while !self.only_this
            && let Some(successor) = kept.iter().copied().find(|kept| *kept > self.execution)
        {
            (self.execution, self.after, self.is_titled) = (successor, 0, false);
            self.print_new().await?;
        }
        match end {
            None => Ok(Step::Continues),
            Some(end) => {
                if self.format == Format::Table {
                    write(&end)?;
                }
                Ok(Step::Ended)
            }
        }
    }

    /// The last line of the table, if the instance or the one execution has ended.
    async fn end(&self) -> Result<Option<String>, Failure> {
        let instance = plain(&self.instance);
        let ended = match self.client.get_orchestration_status(&self.instance).await? {
            OrchestrationStatus::NotFound => return Err(deleted(&self.instance)),
            OrchestrationStatus::Running { .. } => None,
            OrchestrationStatus::Completed { .. } => Some(format!("Instance '{instance}' completed.\n")),
            OrchestrationStatus::Failed { .. } => Some(format!("Instance '{instance}' failed.\n")),
        };
        if !self.only_this {
            return Ok(ended);
        }
        let info = self.client.get_execution_info(&self.instance, self.execution).await?;
        let runs = info.status == ExecutionStatus::Running.as_str();
        Ok((!runs)
            .then(|| format!("Execution {} of instance '{instance}': {}.\n", self.execution, info.status)))
    }

    async fn print_new(&mut self) -> Result<(), Failure> {
        loop {
            let page = self.client.history_page(&self.instance, self.execution, self.after, PAGE).await?;
            let mut text = String::new();
            if self.format == Format::Table && !self.is_titled {
                text = format!("{} execution {}\n", plain(&self.instance), self.execution);
                text.push_str(&self.columns.header());
            }
            let mut events = Vec::new();
            for event in &page {
                let mut event = visible(event, self.payloads)?;
                // Events of several executions have the same ids.
                event.insert("execution_id".to_string(), self.execution.into());
                events.push(event);
            }
            text.push_str(&match self.format {
                Format::Table => self.columns.rows(&events.iter().map(row).collect::<Vec<_>>()),
                Format::Json | Format::Jsonl => events.iter().map(line).collect::<Result<String, _>>()?,
            });
            write(&text)?;
            // Only after the events were printed: a read that fails is repeated from here.
            self.is_titled = true;
            self.after = page.last().map_or(self.after, |last| last.event_id);
            if page.len() < PAGE {
                return Ok(());
            }
        }
    }
}
