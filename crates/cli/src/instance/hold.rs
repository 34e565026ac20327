//! `outlast instance pause` and `outlast instance resume`

use super::args::HoldArgs;
use super::must_run;
use crate::failure::Failure;
use crate::output::{plain, print};
use crate::store::{self, Intent};
use serde::Serialize;

pub(super) async fn pause(args: HoldArgs) -> Result<(), Failure> {
    let place = args.common.store.place()?;
    let client = store::open(&place, Intent::Write).await?;
    must_run(&client, &place, &args.instance, "pause").await?;
    let changed = client.pause_instance(&args.instance, &args.by, &args.reason).await?;
    print(args.common.output, &Changed { instance: args.instance, held: true, changed }, |held| {
        match held.changed {
            true => format!(
                "Paused instance '{}'. Its messages wait until it is resumed.\n",
                plain(&held.instance)
            ),
            false => format!("Instance '{}' was paused or parked before.\n", plain(&held.instance)),
        }
    })
}

pub(super) async fn resume(args: HoldArgs) -> Result<(), Failure> {
    let place = args.common.store.place()?;
    let client = store::open(&place, Intent::Write).await?;
    let changed = client.resume_instance(&args.instance, &args.by, &args.reason).await?;
    print(args.common.output, &Changed { instance: args.instance, held: false, changed }, |held| {
        match held.changed {
            true => format!("Resumed instance '{}'.\n", plain(&held.instance)),
            false => format!("Instance '{}' is neither paused nor parked.\n", plain(&held.instance)),
        }
    })
}

#[derive(Serialize)]
struct Changed {
    instance: String,
    held: bool,
    /// Whether the command changed it.
    changed: bool,
}
