//! `outlast check`: replays the running instances of a store with a new build of the user's program.

mod program;
mod questions;
mod report;

use crate::args::Format;
use crate::duration::duration;
use crate::failure::Failure;
use crate::output::print;
use crate::store::{self, Intent, StoreArgs};
use clap::Args as ClapArgs;
use outlast::providers::{InstanceQuery, Provider};
use outlast::runtime::check::Verdict;
use program::Program;
use questions::Targets;
use report::{Progress, Report};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const EXAMPLES: &str = "Examples:
  outlast check --store shop.db --bin target/release/shop
  OUTLAST_STORE=postgres://ada@db.example.com/shop outlast check --bin ./new --old ./old -o json
  outlast check --store shop.db --bin ./new -- serve --config shop.toml

The program runs up to the start of its runtime, or up to RuntimeBuilder::answer_check, and then answers the command: it runs no
activity, and writes to no store by itself. Call answer_check before the program opens its store.

Exit status: 0 if the program repeats every history, 3 if it does not, 1 if the check failed.";

/// Replay every running instance of a store with a new build of your program, before you deploy it
///
/// The command reads the store, and changes nothing. It reports the instances whose recorded history the program does not repeat:
/// such an instance would fail with a nondeterminism error. The check proves the recorded past: it does not know how the instances
/// go on, and does not see instances that start or continue while it runs.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// The new build of your program
    #[arg(long, value_name = "PATH")]
    bin: PathBuf,
    /// The build that wrote the histories: the report then has the place in its source beside the place in the new source
    #[arg(long, value_name = "PATH")]
    old: Option<PathBuf>,
    /// Only instances of this orchestration
    #[arg(long, value_name = "ORCHESTRATION")]
    name: Option<String>,
    /// Only instances whose id starts with this text
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    /// How long the program may take until it answers: 90s, 15m
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    patience: Duration,
    /// The number of instances between two lines of progress on standard error
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..))]
    progress_every: u32,
    /// Output format: a table, one JSON document, or one JSON object per line
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
    /// Arguments of the program
    #[arg(last = true, value_name = "ARGS")]
    args: Vec<String>,
}

pub(crate) async fn run(args: CheckArgs) -> Result<(), Failure> {
    let place = args.store.place()?;
    let store = store::open_provider(&place, Intent::Read).await?;
    // The gauges of a store count all running instances.
    let total = match (&args.name, &args.prefix) {
        (None, None) => running(&store).await,
        _ => None,
    };
    let query = InstanceQuery {
        status: Some("Running".to_string()),
        orchestration_name: args.name,
        id_prefix: args.prefix,
        limit: Some(1_000),
        ..InstanceQuery::default()
    };
    let program = Program::start(&args.bin, &args.args, args.patience).await?;
    let progress = Progress { step: args.progress_every as usize, total };
    let report = Mutex::new(Report::new(place.to_string(), args.bin.display().to_string(), progress));
    ask(&store, program, Targets::Running(query), &report, |report, verdict| report.add(verdict)).await?;
    let wanted = lock(&report).unexplained();
    match &args.old {
        _ if wanted.is_empty() => {}
        Some(old) => {
            let program = Program::start(old, &args.args, args.patience).await?;
            ask(&store, program, Targets::These(wanted), &report, Report::locate).await?;
        }
        None => lock(&report).note_missing_old_program(),
    }
    let mut report = report.into_inner().unwrap_or_else(PoisonError::into_inner).finished();
    if report.has_checked_nothing() && is_empty(&store).await? {
        report.note_empty_store();
    }
    print(args.output, &report, Report::text)?;
    match report.is_safe() {
        true => Ok(()),
        false => Err(Failure::breaks_instances()),
    }
}

/// The number of running instances. The check works without it, so an error of the store is none of the check.
async fn running(store: &Arc<dyn Provider>) -> Option<u64> {
    let gauges = store.as_management_capability()?.get_gauges().await;
    gauges.ok().map(|gauges| gauges.running_instances)
}

/// Whether the store has no instance at all.
async fn is_empty(store: &Arc<dyn Provider>) -> Result<bool, Failure> {
    let Some(admin) = store.as_management_capability() else { return Ok(false) };
    let any = InstanceQuery { limit: Some(1), ..InstanceQuery::default() };
    let page = admin.query_instances(&any).await?;
    Ok(page.instances.is_empty())
}

/// Asks a program about every target. Questions and answers are under way at the same time.
async fn ask(
    store: &Arc<dyn Provider>,
    program: Program,
    targets: Targets,
    report: &Mutex<Report>,
    add: impl Fn(&mut Report, Verdict),
) -> Result<(), Failure> {
    let Program { path, mut questions, mut answers, mut child } = program;
    let asking = async {
        let asked = questions::write(store, targets, &mut questions, report).await;
        // The end of its input ends the program.
        drop(questions);
        asked
    };
    let hearing = async {
        let mut heard = 0_usize;
        while let Some(verdict) = answers.next::<Verdict>().await? {
            heard += 1;
            add(&mut lock(report), verdict);
        }
        Ok(heard)
    };
    let (asked, heard): (_, Result<usize, Failure>) = tokio::join!(asking, hearing);
    let (asked, heard) = (asked?, heard?);
    let status = child.wait().await?;
    match heard == asked && status.success() {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "'{path}' ended with {status} after {heard} of {asked} answers: its error output says why"
        ))),
    }
}

fn lock(report: &Mutex<Report>) -> std::sync::MutexGuard<'_, Report> {
    report.lock().unwrap_or_else(PoisonError::into_inner)
}
