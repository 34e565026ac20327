//! `outlast orchestration`

use crate::args::Common;
use crate::failure::Failure;
use crate::output::{plain, print, print_list, table};
use crate::store::{self, Intent};
use clap::{Args as ClapArgs, Subcommand};
use outlast::Client;
use outlast::lens::{counted, moment};
use outlast::providers::{InstanceQuery, PausedOrchestration};
use serde::Serialize;

/// The instances of one page of a count.
const PAGE: u32 = 1_000;

#[derive(Debug, ClapArgs)]
pub(crate) struct OrchestrationArgs {
    #[command(subcommand)]
    command: OrchestrationCommand,
}

const EXAMPLES: &str = "Examples:
  outlast orchestration pause Order --by ada --reason 'payment provider is down' --store shop.db
  outlast orchestration list --store shop.db
  outlast orchestration resume Order --store shop.db";

#[derive(Debug, Subcommand)]
enum OrchestrationCommand {
    /// Pause an orchestration: its instances, and those that start later
    ///
    /// Waits for running turns. No process begins a turn of a paused orchestration, in whichever version: instances that start later
    /// are stored, and held before their code runs. Activities that were scheduled run on. A cancellation releases an instance.
    #[command(after_help = EXAMPLES)]
    Pause(PauseArgs),
    /// Resume an orchestration, with its instances that are paused or parked
    Resume(PauseArgs),
    /// List the paused orchestrations
    List(ListArgs),
}

#[derive(Debug, ClapArgs)]
struct PauseArgs {
    #[command(flatten)]
    common: Common,
    /// The name of the orchestration
    orchestration: String,
    /// Your name, which is stored with the pause and in the audit
    #[arg(long, value_name = "NAME", default_value = "the command line")]
    by: String,
    /// The reason, which is stored with the pause and in the audit
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

#[derive(Debug, ClapArgs)]
struct ListArgs {
    #[command(flatten)]
    common: Common,
}

pub(crate) async fn run(args: OrchestrationArgs) -> Result<(), Failure> {
    match args.command {
        OrchestrationCommand::Pause(args) => pause(args).await,
        OrchestrationCommand::Resume(args) => resume(args).await,
        OrchestrationCommand::List(args) => list(args).await,
    }
}

async fn pause(args: PauseArgs) -> Result<(), Failure> {
    let client = store::open(&args.common.store.place()?, Intent::Write).await?;
    let instances = client.pause_orchestration(&args.orchestration, &args.by, &args.reason).await?;
    // The orchestration is paused: an error of the count is none of the command.
    let all = count_running(&client, &args.orchestration).await.ok();
    let held_already = all.map(|all| all.saturating_sub(instances));
    let changed = Changed { orchestration: args.orchestration, paused: true, instances, held_already };
    print(args.common.output, &changed, |changed| {
        let held_already = match changed.held_already.unwrap_or_default() {
            0 => String::new(),
            1 => ", and 1 that was held already".to_string(),
            count => format!(", and {count} that were held already"),
        };
        format!(
            "Orchestration '{}' is paused, with {}{held_already}. Instances that start later wait until it is resumed.\n",
            plain(&changed.orchestration),
            running(changed.instances)
        )
    })
}

/// The number of running instances of an orchestration. All of them are held while it is paused.
async fn count_running(client: &Client, orchestration: &str) -> Result<u64, Failure> {
    let mut query = InstanceQuery {
        status: Some("Running".to_string()),
        orchestration_name: Some(orchestration.to_string()),
        limit: Some(PAGE),
        ..InstanceQuery::default()
    };
    let mut count = 0;
    loop {
        let page = client.list_instances_page(query.clone()).await?;
        count += page.instances.len() as u64;
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(count),
        }
    }
}

async fn resume(args: PauseArgs) -> Result<(), Failure> {
    let client = store::open(&args.common.store.place()?, Intent::Write).await?;
    let instances = client.resume_orchestration(&args.orchestration, &args.by, &args.reason).await?;
    let changed = Changed { orchestration: args.orchestration, paused: false, instances, held_already: None };
    print(args.common.output, &changed, |changed| {
        let instances = match changed.instances {
            1 => "1 held instance goes on".to_string(),
            count => format!("{count} held instances go on"),
        };
        format!("Orchestration '{}' is not paused, and {instances}.\n", plain(&changed.orchestration))
    })
}

fn running(instances: u64) -> String {
    counted(instances, "running instance")
}

async fn list(args: ListArgs) -> Result<(), Failure> {
    let client = store::open(&args.common.store.place()?, Intent::Read).await?;
    let paused = client.paused_orchestrations().await?.unwrap_or_default();
    let paused = Paused { orchestrations: paused.into_iter().map(Listed::from).collect() };
    print_list(args.common.output, &paused, &paused.orchestrations, None, Paused::text)
}

#[derive(Serialize)]
struct Changed {
    orchestration: String,
    paused: bool,
    /// The instances that the command held or released.
    instances: u64,
    /// The running instances that were held when the pause came to them, if they could be counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_already: Option<u64>,
}

#[derive(Serialize)]
struct Paused {
    orchestrations: Vec<Listed>,
}

#[derive(Serialize)]
struct Listed {
    orchestration: String,
    by: String,
    reason: String,
    since_ms: u64,
}

impl From<PausedOrchestration> for Listed {
    fn from(paused: PausedOrchestration) -> Self {
        let PausedOrchestration { orchestration, actor, reason, paused_at_ms } = paused;
        Self { orchestration, by: actor, reason, since_ms: paused_at_ms }
    }
}

impl Paused {
    fn text(&self) -> String {
        if self.orchestrations.is_empty() {
            return "No orchestration is paused.\n".to_string();
        }
        let row = |listed: &Listed| {
            vec![
                plain(&listed.orchestration),
                plain(&listed.by),
                moment(listed.since_ms),
                plain(&listed.reason),
            ]
        };
        let rows: Vec<Vec<String>> = self.orchestrations.iter().map(row).collect();
        table(&["PAUSED ORCHESTRATION", "BY", "SINCE (UTC)", "REASON"], &rows)
    }
}
