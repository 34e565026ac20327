//! `outlast instance cancel` and `outlast instance terminate`

use super::must_run;
use crate::args::Common;
use crate::failure::Failure;
use crate::output::{plain, print};
use crate::record::{By, record};
use crate::store::{self, Intent};
use serde::Serialize;

pub(super) async fn run(common: Common, instance: String, by: By) -> Result<(), Failure> {
    let place = common.store.place()?;
    let client = store::open(&place, Intent::Write).await?;
    must_run(&client, &place, &instance, "cancel").await?;
    client.cancel_instance(instance.as_str(), by.reason.as_str()).await?;
    record(&client, &by, "instance.cancel", &instance).await?;
    let asked = Asked { instance, reason: by.reason, cancel_requested: true };
    print(common.output, &asked, |asked| {
        format!(
            "Asked instance '{}' to stop. It fails at its next turn, in a process that runs it.\n",
            plain(&asked.instance)
        )
    })
}

pub(super) async fn terminate(common: Common, instance: String, by: By) -> Result<(), Failure> {
    let place = common.store.place()?;
    let client = store::open(&place, Intent::Write).await?;
    must_run(&client, &place, &instance, "terminate").await?;
    client.terminate_instance(instance.as_str(), by.reason.as_str()).await?;
    record(&client, &by, "instance.terminate", &instance).await?;
    let told = Told { instance, reason: by.reason, termination_requested: true };
    print(common.output, &told, |told| {
        format!(
            "Instance '{}' ends at its next turn, in a process that runs it. No code of its orchestration runs any more.\n",
            plain(&told.instance)
        )
    })
}

#[derive(Serialize)]
struct Told {
    instance: String,
    reason: String,
    termination_requested: bool,
}

#[derive(Serialize)]
struct Asked {
    instance: String,
    reason: String,
    cancel_requested: bool,
}
