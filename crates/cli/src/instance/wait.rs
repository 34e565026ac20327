//! `outlast instance wait`

use super::args::WaitArgs;
use super::unknown;
use crate::failure::Failure;
use crate::output::{plain, print};
use crate::store::{self, Intent};
use outlast::client::ClientError;
use outlast::runtime::OrchestrationStatus;
use serde::Serialize;
use std::time::Duration;

/// A wait without a timeout.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 3_600);

pub(super) async fn run(args: WaitArgs) -> Result<(), Failure> {
    let place = args.common.store.place()?;
    let client = store::open(&place, Intent::Read).await?;
    let instance = args.instance.as_str();
    let ended = client.wait_for_orchestration(instance, args.timeout.unwrap_or(FOREVER)).await;
    let ended = match ended {
        Ok(status) => Ended::of(&args.instance, status),
        Err(ClientError::Timeout) => {
            return Err(match client.get_orchestration_status(instance).await? {
                OrchestrationStatus::NotFound => unknown(instance, &place),
                _ => Failure::timeout(format!(
                    "instance '{instance}' still runs: `outlast instance why {instance}` says what it waits for"
                )),
            });
        }
        Err(error) => return Err(error.into()),
    };
    print(args.common.output, &ended, Ended::text)?;
    match ended.failure {
        None => Ok(()),
        Some(_) => Err(Failure::instance_failed()),
    }
}

/// The end of an instance.
#[derive(Serialize)]
struct Ended {
    instance: String,
    status: &'static str,
    output: Option<String>,
    /// The message of the failure.
    failure: Option<String>,
}

impl Ended {
    fn of(instance: &str, status: OrchestrationStatus) -> Self {
        let instance = instance.to_string();
        match status {
            OrchestrationStatus::Failed { details, .. } => {
                Self { instance, status: "Failed", output: None, failure: Some(details.display_message()) }
            }
            OrchestrationStatus::Completed { output, .. } => {
                Self { instance, status: "Completed", output: Some(output), failure: None }
            }
            // The wait returns ended instances only.
            OrchestrationStatus::Running { .. } | OrchestrationStatus::NotFound => {
                Self { instance, status: "Running", output: None, failure: None }
            }
        }
    }

    fn text(&self) -> String {
        let instance = plain(&self.instance);
        match (&self.output, &self.failure) {
            (_, Some(failure)) => format!("Instance '{instance}' failed: {}\n", plain(failure)),
            (Some(output), None) => format!("Instance '{instance}' completed: {}\n", plain(output)),
            (None, None) => format!("Instance '{instance}' is {}.\n", self.status),
        }
    }
}
