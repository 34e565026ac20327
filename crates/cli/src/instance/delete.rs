//! `outlast instance delete`

use super::unknown;
use crate::args::Common;
use crate::failure::Failure;
use crate::output::{plain, print};
use crate::record::{By, record};
use crate::store::{self, Intent};
use outlast::client::ClientError;
use serde::Serialize;

pub(super) async fn run(common: Common, instance: String, force: bool, by: By) -> Result<(), Failure> {
    let place = common.store.place()?;
    let client = store::open(&place, Intent::Write).await?;
    let deleted = match client.delete_instance(&instance, force).await {
        Ok(deleted) => deleted,
        Err(ClientError::InstanceNotFound { .. }) => return Err(unknown(&instance, &place)),
        Err(ClientError::InstanceStillRunning { .. }) => {
            return Err(Failure::refused(format!(
                "instance '{instance}' runs: nothing was deleted; cancel it first, or use --force"
            )));
        }
        Err(ClientError::CannotDeleteSubOrchestration { .. }) => {
            return Err(Failure::refused(format!(
                "instance '{instance}' is a child: nothing was deleted; delete its root"
            )));
        }
        Err(error) => return Err(error.into()),
    };
    record(&client, &by, "instance.delete", &instance).await?;
    let gone = Gone { instance, instances: deleted.instances_deleted, events: deleted.events_deleted };
    print(common.output, &gone, |gone| {
        let more = match gone.instances.saturating_sub(1) {
            0 => String::new(),
            1 => " and 1 descendant".to_string(),
            more => format!(" and {more} descendants"),
        };
        format!("Deleted instance '{}'{more}, with {} events.\n", plain(&gone.instance), gone.events)
    })
}

#[derive(Serialize)]
struct Gone {
    instance: String,
    /// Deleted instances: the root and its descendants.
    instances: u64,
    events: u64,
}
