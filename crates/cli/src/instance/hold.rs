//! `outlast instance pause` and `outlast instance resume`

use super::must_run;
use crate::args::Common;
use crate::failure::Failure;
use crate::output::{plain, print};
use crate::record::By;
use crate::store::{self, Intent};
use serde::Serialize;

pub(super) async fn pause(common: Common, instance: String, by: By) -> Result<(), Failure> {
    let place = common.store.place()?;
    let client = store::open(&place, Intent::Write).await?;
    must_run(&client, &place, &instance, "pause").await?;
    let changed = client.pause_instance(&instance, &by.name, &by.reason).await?;
    print(common.output, &Changed { instance, held: true, changed }, |held| match held.changed {
        true => {
            format!("Paused instance '{}'. Its messages wait until it is resumed.\n", plain(&held.instance))
        }
        false => format!("Instance '{}' was paused or parked before.\n", plain(&held.instance)),
    })
}

pub(super) async fn resume(common: Common, instance: String, by: By) -> Result<(), Failure> {
    let place = common.store.place()?;
    let client = store::open(&place, Intent::Write).await?;
    let changed = client.resume_instance(&instance, &by.name, &by.reason).await?;
    print(common.output, &Changed { instance, held: false, changed }, |held| match held.changed {
        true => format!("Resumed instance '{}'.\n", plain(&held.instance)),
        false => format!("Instance '{}' is neither paused nor parked.\n", plain(&held.instance)),
    })
}

#[derive(Serialize)]
struct Changed {
    instance: String,
    held: bool,
    /// Whether the command changed it.
    changed: bool,
}
