//! `outlast instance why`

use super::args::WhyArgs;
use super::unknown;
use crate::failure::Failure;
use crate::output::print;
use crate::store::{self, Intent};
use outlast::client::Client;
use outlast::lens::{Diagnosis, Rule};
use outlast::runtime::RuntimeOptions;
use serde::Serialize;

pub(super) async fn run(args: WhyArgs) -> Result<(), Failure> {
    let place = args.common.store.place()?;
    let client = store::open(&place, Intent::Read).await?;
    let found = client.diagnose_instance(&args.instance, args.max_attempts).await?;
    match found.rule() {
        Rule::NotFound => Err(unknown(&args.instance, &place)),
        rule if !rule.is_of_an_instance() => Err(Failure::not_found(found.sentence())),
        _ => print(args.common.output, &Why::of(&found), |why| format!("{}\n", why.sentence)),
    }
}

/// The answer as JSON.
#[derive(Serialize)]
pub(super) struct Why {
    instance: String,
    pub(super) sentence: String,
    rule: Rule,
    /// The command that helps.
    command: Option<String>,
    /// The rules of the children in the sentence.
    children: Vec<Link>,
}

#[derive(Serialize)]
struct Link {
    instance: String,
    rule: Rule,
}

impl Why {
    /// Whether the instance is paused or parked.
    pub(super) fn is_held(&self) -> bool {
        self.rule == Rule::Held
    }

    /// Whether the instance runs, and its history does not decode.
    pub(super) fn is_undecodable(&self) -> bool {
        self.rule == Rule::Undecodable
    }

    pub(super) fn of(found: &Diagnosis) -> Self {
        let mut children = Vec::new();
        let mut last = found;
        while let Some(child) = last.of_child() {
            children.push(Link { instance: child.instance().to_string(), rule: child.rule() });
            last = child;
        }
        Self {
            instance: found.instance().to_string(),
            sentence: found.sentence(),
            rule: found.rule(),
            command: found.remedy().map(str::to_string),
            children,
        }
    }
}

/// The diagnosis with the default of the runtimes for the most deliveries.
pub(super) async fn of_instance_by_default(client: &Client, instance: &str) -> Result<Diagnosis, Failure> {
    Ok(client.diagnose_instance(instance, RuntimeOptions::default().max_attempts).await?)
}
