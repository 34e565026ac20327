//! `outlast instance cancel`

use super::args::CancelArgs;
use super::must_run;
use crate::failure::Failure;
use crate::output::{plain, print};
use crate::store::{self, Intent};
use serde::Serialize;

pub(super) async fn run(args: CancelArgs) -> Result<(), Failure> {
    let place = args.common.store.place()?;
    let client = store::open(&place, Intent::Write).await?;
    must_run(&client, &place, &args.instance, "cancel").await?;
    client.cancel_instance(args.instance.as_str(), args.reason.as_str()).await?;
    let asked = Asked { instance: args.instance, reason: args.reason, cancel_requested: true };
    print(args.common.output, &asked, |asked| {
        format!(
            "Asked instance '{}' to stop. It fails at its next turn, in a process that runs it.\n",
            plain(&asked.instance)
        )
    })
}

#[derive(Serialize)]
struct Asked {
    instance: String,
    reason: String,
    cancel_requested: bool,
}
