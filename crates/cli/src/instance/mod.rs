//! `outlast instance`: one file per subcommand.

mod cancel;
mod history;
mod list;
mod show;
mod waiting;

use crate::args::{InstanceArgs, InstanceCommand};
use crate::failure::Failure;
use crate::store::Place;

pub(crate) async fn run(args: InstanceArgs) -> Result<(), Failure> {
    match args.command {
        InstanceCommand::List(args) => list::run(args).await,
        InstanceCommand::Show(args) => show::run(args).await,
        InstanceCommand::History(args) => history::run(args).await,
        InstanceCommand::Cancel(args) => cancel::run(args).await,
    }
}

/// The message for an instance that does not exist.
fn unknown(instance: &str, place: &Place) -> Failure {
    Failure::new(format!(
        "there is no instance '{instance}' in {place}: `outlast instance list` shows those that are there (one that was \
         just started appears with its first turn)"
    ))
}
