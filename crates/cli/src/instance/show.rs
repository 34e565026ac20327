//! `outlast instance show`

use super::args::ShowArgs;
use super::waiting::{self, Waiting};
use super::why::{self, Why};
use super::{follow_show, unknown};
use crate::failure::Failure;
use crate::output::{plain, print};
use crate::store::{self, Intent, Place};
use outlast::ExecutionStatus;
use outlast::author::plain_text;
use outlast::client::Client;
use outlast::lens::{Rule, moment};
use outlast::runtime::OrchestrationStatus;
use serde::Serialize;
use std::collections::BTreeMap;

/// The most descendants that are shown; a tree may have thousands.
const MOST_DESCENDANTS: usize = 200;

pub(super) async fn run(args: ShowArgs) -> Result<(), Failure> {
    if args.follow {
        return follow_show::run(args).await;
    }
    let place = args.common.store.place()?;
    let client = store::open(&place, Intent::Read).await?;
    match read(&client, &args.instance).await? {
        Some(shown) => print(args.common.output, &shown, Shown::text),
        None => Err(missing(&client, &args.instance, &place).await?),
    }
}

/// The failure for an instance that has no row.
pub(super) async fn missing(client: &Client, instance: &str, place: &Place) -> Result<Failure, Failure> {
    let found = why::of_instance_by_default(client, instance).await?;
    Ok(match found.rule() {
        Rule::NotFound => unknown(instance, place),
        // The start is queued, so there is nothing to show yet.
        _ => Failure::not_found(found.sentence()),
    })
}

#[derive(Serialize)]
pub(super) struct Shown {
    instance: String,
    orchestration: String,
    version: String,
    status: String,
    execution: u64,
    executions: Vec<u64>,
    parent: Option<String>,
    created_ms: u64,
    updated_ms: u64,
    /// The diagnosis, as `instance why` prints it.
    why: Why,
    /// The waits of a running instance; null for an ended one, and for one whose history does not decode.
    waiting: Option<Waiting>,
    /// The output.
    output: Option<String>,
    /// The failure.
    failure: Option<Ended>,
    custom_status: Option<String>,
    custom_status_version: u64,
    kv: BTreeMap<String, String>,
    descendants: Vec<Descendant>,
    descendants_left_out: usize,
}

#[derive(Serialize)]
struct Ended {
    category: String,
    message: String,
}

#[derive(Serialize)]
struct Descendant {
    instance: String,
    parent: Option<String>,
    orchestration: String,
    status: String,
}

pub(super) async fn read(client: &Client, instance: &str) -> Result<Option<Shown>, Failure> {
    let (output, failure, custom_status, custom_status_version) =
        match client.get_orchestration_status(instance).await? {
            OrchestrationStatus::NotFound => return Ok(None),
            OrchestrationStatus::Running { custom_status, custom_status_version } => {
                (None, None, custom_status, custom_status_version)
            }
            OrchestrationStatus::Completed { output, custom_status, custom_status_version } => {
                (Some(output), None, custom_status, custom_status_version)
            }
            OrchestrationStatus::Failed { details, custom_status, custom_status_version } => {
                let ended =
                    Ended { category: details.category().to_string(), message: details.display_message() };
                (None, Some(ended), custom_status, custom_status_version)
            }
        };
    let info = client.get_instance_info(instance).await?;
    let below: Vec<String> =
        client.get_instance_tree(instance).await?.all_ids.into_iter().filter(|id| id != instance).collect();
    let descendants_left_out = below.len().saturating_sub(MOST_DESCENDANTS);
    let mut descendants = Vec::new();
    for id in below.into_iter().take(MOST_DESCENDANTS) {
        let info = client.get_instance_info(&id).await?;
        descendants.push(Descendant {
            instance: id,
            parent: info.parent_instance_id,
            orchestration: info.orchestration_name,
            status: info.status,
        });
    }
    let why = Why::of(&why::of_instance_by_default(client, instance).await?);
    let waiting = match ExecutionStatus::from_text(&info.status) {
        // The waits are those of the history.
        _ if why.is_undecodable() => None,
        Some(ExecutionStatus::Running) => {
            Some(waiting::read(client, instance, info.current_execution_id).await?)
        }
        _ => None,
    };
    Ok(Some(Shown {
        instance: info.instance_id,
        orchestration: info.orchestration_name,
        version: info.orchestration_version,
        status: info.status,
        execution: info.current_execution_id,
        executions: client.list_executions(instance).await?,
        parent: info.parent_instance_id,
        created_ms: info.created_at,
        updated_ms: info.updated_at,
        why,
        waiting,
        output,
        failure,
        custom_status,
        custom_status_version,
        kv: client.get_kv_all_values(instance).await?.into_iter().collect(),
        descendants,
        descendants_left_out,
    }))
}

impl Shown {
    /// Whether the instance has an outcome.
    pub(super) fn has_ended(&self) -> bool {
        self.output.is_some() || self.failure.is_some()
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let mut row = |name: &str, value: &str| text.push_str(&format!("{name:<15}{}\n", plain(value)));
        row("instance", &self.instance);
        row("orchestration", &format!("{} {}", self.orchestration, self.version));
        row("status", &self.status);
        match self.executions.as_slice() {
            [] | [_] => row("execution", &self.execution.to_string()),
            kept => row("execution", &format!("{} ({} are kept)", self.execution, kept.len())),
        }
        if let Some(parent) = &self.parent {
            row("parent", parent);
        }
        row("created (UTC)", &moment(self.created_ms));
        row("updated (UTC)", &moment(self.updated_ms));
        row("why", &self.why.sentence);
        let code = format!("{} {}", self.orchestration, self.version);
        for (title, line) in self.waiting.iter().flat_map(|waiting| waiting.lines(&code, self.why.is_held()))
        {
            row(title, &line);
        }
        if let Some(output) = &self.output {
            row("output", output);
        }
        if let Some(ended) = &self.failure {
            row("failure", &format!("{} ({})", plain_text(&ended.message), ended.category));
        }
        if let Some(status) = &self.custom_status {
            row("custom status", &format!("{status} (version {})", self.custom_status_version));
        }
        for (index, (key, value)) in self.kv.iter().enumerate() {
            row(if index == 0 { "keys" } else { "" }, &format!("{key} = {value}"));
        }
        text.push_str(&self.tree());
        text
    }

    /// The descendants as a tree.
    fn tree(&self) -> String {
        if self.descendants.is_empty() {
            return String::new();
        }
        let mut text = "descendants\n".to_string();
        // A stack instead of recursion: the depth of a tree is not bounded.
        let mut open: Vec<(&str, usize)> = self.below(&self.instance).map(|child| (child, 1)).collect();
        open.reverse();
        while let Some((id, depth)) = open.pop() {
            if let Some(shown) = self.descendants.iter().find(|descendant| descendant.instance == id) {
                let indent = "  ".repeat(depth.min(20));
                text.push_str(&format!(
                    "{indent}{}  {}  {}\n",
                    plain(id),
                    plain(&shown.orchestration),
                    shown.status
                ));
            }
            let mut children: Vec<(&str, usize)> = self.below(id).map(|child| (child, depth + 1)).collect();
            children.reverse();
            open.extend(children);
        }
        if self.descendants_left_out > 0 {
            text.push_str(&format!("  and {} more\n", self.descendants_left_out));
        }
        text
    }

    fn below<'a>(&'a self, parent: &str) -> impl Iterator<Item = &'a str> {
        let children = self.descendants.iter().filter(move |child| child.parent.as_deref() == Some(parent));
        children.map(|child| child.instance.as_str())
    }
}
