//! `outlast orchestration`

use crate::args::Common;
use crate::failure::Failure;
use crate::output::{plain, print, print_list, table};
use crate::store::{self, Intent};
use clap::{Args as ClapArgs, Subcommand};
use outlast::lens::{counted, moment};
use outlast::providers::PausedOrchestration;
use serde::Serialize;

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
    let changed = Changed { orchestration: args.orchestration, paused: true, instances };
    print(args.common.output, &changed, |changed| {
        format!(
            "Orchestration '{}' is paused, with {}. Instances that start later wait until it is resumed.\n",
            plain(&changed.orchestration),
            running(changed.instances)
        )
    })
}

async fn resume(args: PauseArgs) -> Result<(), Failure> {
    let client = store::open(&args.common.store.place()?, Intent::Write).await?;
    let instances = client.resume_orchestration(&args.orchestration, &args.by, &args.reason).await?;
    let changed = Changed { orchestration: args.orchestration, paused: false, instances };
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
