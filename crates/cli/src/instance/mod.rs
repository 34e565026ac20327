//! `outlast instance`: what operators ask about instances, one file per question.

mod cancel;
mod history;
mod list;
mod show;

use crate::args::{InstanceArgs, InstanceCommand};
use crate::failure::Failure;

pub(crate) async fn run(args: InstanceArgs) -> Result<(), Failure> {
    match args.command {
        InstanceCommand::List(args) => list::run(args).await,
        InstanceCommand::Show(args) => show::run(args).await,
        InstanceCommand::History(args) => history::run(args).await,
        InstanceCommand::Cancel(args) => cancel::run(args).await,
    }
}

/// What is said about an id that the store does not know.
fn unknown(instance: &str, store: &str) -> Failure {
    Failure::new(format!(
        "there is no instance '{instance}' in {store}: `outlast instance list` shows those that are there (one that was \
         just started appears with its first turn)"
    ))
}
