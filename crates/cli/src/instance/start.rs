//! `outlast instance start`

use super::args::{IfExists, StartArgs};
use crate::failure::Failure;
use crate::output::{plain, print};
use crate::record::{By, record};
use crate::store::{self, Intent};
use outlast::client::Conflict;
use outlast::providers::StartOutcome;
use serde::Serialize;
use std::io::Read;
use std::path::Path;

pub(super) async fn run(args: StartArgs) -> Result<(), Failure> {
    let input = match &args.input_file {
        Some(path) => read(path)?,
        None => args.input.unwrap_or_default(),
    };
    let client = store::open(&args.common.store.place()?, Intent::Write).await?;
    let mut request = client.start_request(args.orchestration.as_str()).input(input);
    if let Some(instance) = args.instance {
        request = request.instance(instance);
    }
    if let Some(token) = args.token {
        request = request.idempotency_token(token);
    }
    if let Some(version) = args.version {
        request = request.version(version);
    }
    if let Some(delay) = args.delay {
        request = request.delay(delay);
    }
    let conflict = match args.if_exists {
        IfExists::Fail => Conflict::Fail,
        IfExists::UseExisting => Conflict::UseExisting,
    };
    let receipt = request.if_exists(conflict).send().await?;
    let is_started = receipt.is_started();
    if is_started {
        let by = By { name: args.by, reason: args.reason };
        record(&client, &by, "instance.start", &receipt.instance).await?;
    }
    let status = match receipt.outcome {
        StartOutcome::Started => None,
        StartOutcome::AlreadyExists { status } => status,
    };
    let started = Started {
        instance: receipt.instance,
        orchestration: args.orchestration,
        started: is_started,
        status,
    };
    match conflict {
        Conflict::Fail if !is_started => Err(Failure::refused(format!(
            "instance '{}' exists{}: nothing was started; take another id, or use --if-exists use-existing",
            plain(&started.instance),
            started.is()
        ))),
        _ => print(args.common.output, &started, Started::text),
    }
}

/// The input from a file; `-` is standard input.
fn read(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().read_to_string(&mut text).map(drop),
        false => std::fs::read_to_string(path).map(|read| text = read),
    };
    match read {
        Ok(()) => Ok(text),
        Err(error) => Err(Failure::new(format!("the input '{}' cannot be read: {error}", path.display()))),
    }
}

#[derive(Serialize)]
struct Started {
    instance: String,
    orchestration: String,
    /// False if the instance existed.
    started: bool,
    /// The status of an instance that existed; null before its first turn.
    status: Option<String>,
}

impl Started {
    /// The status of an instance that existed, for a sentence.
    fn is(&self) -> String {
        self.status.as_ref().map_or_else(|| " (not run yet)".to_string(), |status| format!(" ({status})"))
    }

    fn text(&self) -> String {
        let (instance, orchestration) = (plain(&self.instance), plain(&self.orchestration));
        match self.started {
            true => format!(
                "Started instance '{instance}' of '{orchestration}'. Its first turn runs in a process that has the orchestration.\n"
            ),
            false => format!("Instance '{instance}' exists{}. Nothing was started.\n", self.is()),
        }
    }
}
