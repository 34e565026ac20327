//! `outlast instance`: one file per subcommand.

pub(crate) mod args;
mod bulk;
mod cancel;
mod change_args;
mod count;
mod delete;
mod diff;
mod follow_history;
mod follow_list;
mod follow_show;
mod gantt;
mod history;
mod hold;
mod kv;
mod list;
mod reset;
mod send;
mod show;
mod start;
mod stats;
mod timeline;
mod tree;
mod wait;
mod waiting;
mod why;

use crate::failure::Failure;
use crate::record::By;
use crate::store::Place;
pub(crate) use args::InstanceArgs;
use args::InstanceCommand;
use outlast::Event;
use outlast::client::{BulkVerb, Client};
use outlast::lens::counted;
use outlast::runtime::OrchestrationStatus;

pub(crate) async fn run(args: InstanceArgs) -> Result<(), Failure> {
    match args.command {
        InstanceCommand::List(args) => list::run(args).await,
        InstanceCommand::Count(args) => count::run(args).await,
        InstanceCommand::Tree(args) => tree::run(args).await,
        InstanceCommand::Kv(args) => kv::run(args).await,
        InstanceCommand::Stats(args) => stats::run(args).await,
        InstanceCommand::Start(args) => start::run(args).await,
        InstanceCommand::Show(args) => show::run(args).await,
        InstanceCommand::Why(args) => why::run(args).await,
        InstanceCommand::History(args) => history::run(args).await,
        InstanceCommand::Timeline(args) => timeline::run(args).await,
        InstanceCommand::Diff(args) => diff::run(args).await,
        InstanceCommand::Signal(args) => send::signal(args).await,
        InstanceCommand::Enqueue(args) => send::enqueue(args).await,
        InstanceCommand::Wait(args) => wait::run(args).await,
        InstanceCommand::Cancel(args) => {
            let by = By { name: args.by, reason: args.reason };
            match args.instance {
                Some(instance) => cancel::run(args.common, instance, by).await,
                None => bulk::run(args.common, args.bulk, BulkVerb::Cancel, by).await,
            }
        }
        InstanceCommand::Terminate(args) => {
            let by = By { name: args.by, reason: args.reason };
            match args.instance {
                Some(instance) => cancel::terminate(args.common, instance, by).await,
                None => bulk::run(args.common, args.bulk, BulkVerb::Terminate, by).await,
            }
        }
        InstanceCommand::Delete(args) => {
            let by = By { name: args.by, reason: args.reason };
            match args.instance {
                Some(instance) => delete::run(args.common, instance, args.force, by).await,
                None => bulk::run(args.common, args.bulk, BulkVerb::Delete, by).await,
            }
        }
        InstanceCommand::Pause(args) => {
            let by = By { name: args.by, reason: args.reason };
            match args.instance {
                Some(instance) => hold::pause(args.common, instance, by).await,
                None => bulk::run(args.common, args.bulk, BulkVerb::Pause, by).await,
            }
        }
        InstanceCommand::Resume(args) => {
            let by = By { name: args.by, reason: args.reason };
            match args.instance {
                Some(instance) => hold::resume(args.common, instance, by).await,
                None => bulk::run(args.common, args.bulk, BulkVerb::Resume, by).await,
            }
        }
        InstanceCommand::Reset(args) => reset::reset(args).await,
        InstanceCommand::Fork(args) => reset::fork(args).await,
        InstanceCommand::Export(args) => crate::transfer::export::run(args).await,
        InstanceCommand::Import(args) => crate::transfer::import::run(args).await,
    }
}

/// The message for an instance that does not exist.
pub(crate) fn unknown(instance: &str, place: &Place) -> Failure {
    Failure::not_found(format!(
        "there is no instance '{instance}' in {place}: `outlast instance list` shows those that are there (one that was \
         just started appears with its first turn)"
    ))
}

/// The failure of a command that followed an instance which was deleted meanwhile.
fn deleted(instance: &str) -> Failure {
    Failure::not_found(format!("instance '{instance}' was deleted while the command followed it"))
}

/// The id and the events of an execution: of the newest one if `wanted` is `None`.
async fn execution(
    client: &Client,
    place: &Place,
    instance: &str,
    wanted: Option<u64>,
) -> Result<(u64, Vec<Event>), Failure> {
    let execution = execution_id(client, place, instance, wanted).await?;
    Ok((execution, client.read_execution_history(instance, execution).await?))
}

/// The id of an execution that is kept: of the newest one if `wanted` is `None`.
async fn execution_id(
    client: &Client,
    place: &Place,
    instance: &str,
    wanted: Option<u64>,
) -> Result<u64, Failure> {
    if client.get_orchestration_status(instance).await? == OrchestrationStatus::NotFound {
        return Err(unknown(instance, place));
    }
    let kept = client.list_executions(instance).await?;
    let newest = kept.last().copied().unwrap_or(outlast::INITIAL_EXECUTION_ID);
    let execution = wanted.unwrap_or(newest);
    if !kept.contains(&execution) {
        return Err(Failure::not_found(format!(
            "instance '{instance}' has no execution {execution}: the newest is {newest}, and the store keeps {}",
            counted(kept.len(), "execution")
        )));
    }
    Ok(execution)
}

/// An error for an instance that does not run: messages to it have no effect. A start in the queue counts as running: the first turn
/// reads the message, or keeps it.
async fn must_run(client: &Client, place: &Place, instance: &str, act: &str) -> Result<(), Failure> {
    let ended = match client.get_orchestration_status(instance).await? {
        OrchestrationStatus::NotFound => {
            let rule = why::of_instance_by_default(client, instance).await?.rule();
            return if rule.is_of_an_instance() { Ok(()) } else { Err(unknown(instance, place)) };
        }
        OrchestrationStatus::Running { .. } => return Ok(()),
        OrchestrationStatus::Completed { .. } => "completed",
        OrchestrationStatus::Failed { .. } => "failed",
    };
    Err(Failure::new(format!("instance '{instance}' has {ended} already: there is nothing to {act}")))
}
