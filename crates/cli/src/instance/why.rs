//! `outlast instance why`

use super::args::WhyArgs;
use super::unknown;
use super::waiting::MOST_QUEUED;
use crate::failure::Failure;
use crate::output::print;
use crate::store::{self, Intent};
use outlast::client::Client;
use outlast::lens::{Diagnosis, Evidence, Rule, diagnose};
use outlast::providers::{Clock, SystemClock};
use outlast::runtime::{OrchestrationStatus, RuntimeOptions};
use serde::Serialize;

/// The most dead letters of the store that are searched for those of the instance.
const MOST_DEAD_LETTERS: usize = 1_000;
/// The most instances of a chain of children.
const MOST_CHILDREN: usize = 20;
/// The number of reads if the store changes in between.
const MAX_READS: usize = 3;

pub(super) async fn run(args: WhyArgs) -> Result<(), Failure> {
    let place = args.common.store.place()?;
    let client = store::open(&place, Intent::Read).await?;
    let found = of_instance(&client, &args.instance, args.max_attempts).await?;
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
    of_instance(client, instance, RuntimeOptions::default().max_attempts).await
}

/// The diagnosis of an instance and of the children that it waits for.
pub(super) async fn of_instance(
    client: &Client,
    instance: &str,
    max_attempts: u32,
) -> Result<Diagnosis, Failure> {
    let mut last = of_one(client, instance, max_attempts).await?;
    let mut parents = Vec::new();
    while let Some(child) = last.child().filter(|_| parents.len() < MOST_CHILDREN).map(str::to_string) {
        parents.push(last);
        last = of_one(client, &child, max_attempts).await?;
    }
    Ok(parents.into_iter().rfold(last, |child, parent| parent.with_child(child)))
}

/// The diagnosis of one instance. A turn between the reads can make an operation look lost; then all is read again.
async fn of_one(client: &Client, instance: &str, max_attempts: u32) -> Result<Diagnosis, Failure> {
    let mut reads = 1;
    loop {
        let found = read(client, instance, max_attempts).await?;
        if reads == MAX_READS || !found.rule().may_come_from_two_times() {
            return Ok(found);
        }
        reads += 1;
    }
}

async fn read(client: &Client, instance: &str, max_attempts: u32) -> Result<Diagnosis, Failure> {
    let is_known = client.get_orchestration_status(instance).await? != OrchestrationStatus::NotFound;
    let executions = client.list_executions(instance).await?;
    let history = match (is_known, executions.last()) {
        (true, _) => {
            let current = client.get_instance_info(instance).await?.current_execution_id;
            client.read_execution_history(instance, current).await?
        }
        (false, Some(newest)) => client.read_execution_history(instance, *newest).await?,
        (false, None) => Vec::new(),
    };
    let pending = client.pending_work(instance, MOST_QUEUED).await?;
    let letters = client.list_dead_letters(MOST_DEAD_LETTERS).await?;
    let dead_letters: Vec<_> =
        letters.into_iter().filter(|letter| letter.instance_id.as_deref() == Some(instance)).collect();
    let now_ms = pending.as_ref().map_or_else(|| SystemClock.now_ms(), |pending| pending.now_ms);
    let mut evidence = Evidence::new(instance, &history, now_ms);
    evidence.is_recorded = is_known || !executions.is_empty();
    evidence.pending = pending.as_ref();
    evidence.dead_letters = &dead_letters;
    let held = client.held_instance(instance).await?;
    evidence.held = held.as_ref();
    evidence.max_attempts = Some(max_attempts);
    Ok(diagnose(&evidence))
}
