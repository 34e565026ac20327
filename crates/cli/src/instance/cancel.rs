//! `outlast instance cancel`

use super::unknown;
use crate::args::CancelArgs;
use crate::failure::Failure;
use crate::output::{plain, print};
use crate::store::{self, Intent};
use outlast::runtime::OrchestrationStatus;
use serde::Serialize;

pub(super) async fn run(args: CancelArgs) -> Result<(), Failure> {
    let place = args.common.store.place()?;
    let client = store::open(&place, Intent::Write).await?;
    let ended = match client.get_orchestration_status(&args.instance).await? {
        OrchestrationStatus::NotFound => return Err(unknown(&args.instance, &place)),
        OrchestrationStatus::Running { .. } => None,
        OrchestrationStatus::Completed { .. } => Some("completed"),
        OrchestrationStatus::Failed { .. } => Some("failed"),
    };
    if let Some(ended) = ended {
        let message = format!("instance '{}' has {ended} already: there is nothing to cancel", args.instance);
        return Err(Failure::new(message));
    }
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
