//! Instances: rows of the list, and one instance with its state.

use super::held::Held;
use super::waits::{Awaited, awaited};
use super::{Why, info, rfc3339, why};
use crate::app::App;
use crate::problem::{Code, Problem};
use outlast::client::ClientError;
use outlast::providers::{InstanceInfo, InstanceQuery};
use outlast::{ErrorDetails, OrchestrationStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The most instances of a page.
const MOST: u32 = 500;

/// An instance. Times are RFC 3339, and milliseconds since the Unix epoch.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Instance {
    pub(crate) id: String,
    pub(crate) orchestration: String,
    pub(crate) version: String,
    /// The status of the current execution: `Running`, `Completed`, `Failed` or `ContinuedAsNew`.
    pub(crate) status: String,
    /// The current execution.
    pub(crate) execution: u64,
    pub(crate) parent: Option<String>,
    pub(crate) created_at: String,
    pub(crate) created_at_ms: u64,
    pub(crate) updated_at: String,
    pub(crate) updated_at_ms: u64,
}

impl From<InstanceInfo> for Instance {
    fn from(info: InstanceInfo) -> Self {
        Self {
            id: info.instance_id,
            orchestration: info.orchestration_name,
            version: info.orchestration_version,
            status: info.status,
            execution: info.current_execution_id,
            parent: info.parent_instance_id,
            created_at: rfc3339(info.created_at),
            created_at_ms: info.created_at,
            updated_at: rfc3339(info.updated_at),
            updated_at_ms: info.updated_at,
        }
    }
}

/// A page of instances, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InstancePage {
    pub(crate) items: Vec<Instance>,
    /// The parameter `after` of the next page.
    pub(crate) next: Option<String>,
    /// Whether no further instance matches.
    pub(crate) complete: bool,
}

/// The parameters of the list.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct ListQuery {
    pub(crate) status: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) prefix: Option<String>,
    pub(crate) parent: Option<String>,
    pub(crate) created_from_ms: Option<u64>,
    pub(crate) created_before_ms: Option<u64>,
    pub(crate) after: Option<String>,
    pub(crate) limit: Option<u32>,
}

/// The statuses as the stores write them.
pub(crate) const STATUSES: [&str; 4] = ["Running", "Failed", "Completed", "ContinuedAsNew"];

impl ListQuery {
    /// The status as the stores write it; a filter form sends empty texts for fields that are not used.
    pub(crate) fn stored_status(&self) -> Result<Option<String>, Problem> {
        stored_status(self.status.as_deref())
    }
}

/// A status as the stores write it; `None` for an empty text.
pub(crate) fn stored_status(status: Option<&str>) -> Result<Option<String>, Problem> {
    let Some(wanted) = status.filter(|status| !status.is_empty()) else { return Ok(None) };
    match STATUSES.into_iter().find(|status| status.eq_ignore_ascii_case(wanted)) {
        Some(status) => Ok(Some(status.to_string())),
        None => Err(Problem::invalid("the status is Running, Completed, Failed or ContinuedAsNew")),
    }
}

impl ListQuery {
    /// The parameters of the page after this position.
    pub(crate) fn address(&self, after: &str) -> String {
        crate::link::query([
            ("status", self.status.clone()),
            ("name", self.name.clone()),
            ("prefix", self.prefix.clone()),
            ("parent", self.parent.clone()),
            ("created_from_ms", self.created_from_ms.map(|ms| ms.to_string())),
            ("created_before_ms", self.created_before_ms.map(|ms| ms.to_string())),
            ("limit", self.limit.map(|limit| limit.to_string())),
            ("after", Some(after.to_string())),
        ])
    }
}

fn given(text: &Option<String>) -> Option<String> {
    text.clone().filter(|text| !text.is_empty())
}

/// A page of the instances that match.
pub(crate) async fn list(app: &App, query: &ListQuery) -> Result<InstancePage, Problem> {
    let limit = query.limit.unwrap_or(100);
    if !(1..=MOST).contains(&limit) {
        return Err(Problem::invalid(format!("the limit of a page is from 1 to {MOST}")));
    }
    let after = given(&query.after);
    let wanted = InstanceQuery {
        status: query.stored_status()?,
        orchestration_name: given(&query.name),
        id_prefix: given(&query.prefix),
        parent_instance_id: given(&query.parent),
        created_from: query.created_from_ms,
        created_before: query.created_before_ms,
        limit: Some(limit),
        after: after.clone(),
    };
    let page = app.client.list_instances_page(wanted).await.map_err(|error| match error {
        ClientError::Provider(ref cause) if !cause.is_retryable() && after.is_some() => {
            Problem::new(Code::INVALID, "`after` is not a position of this list: start again without it")
        }
        other => other.into(),
    })?;
    let complete = page.next.is_none();
    Ok(InstancePage {
        items: page.instances.into_iter().map(Instance::from).collect(),
        next: page.next,
        complete,
    })
}

/// An instance and its state. Payloads are null unless the request asks for them.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Detail {
    #[serde(flatten)]
    pub(crate) instance: Instance,
    /// `running`, `completed` or `failed`; an instance that continues as new is running.
    pub(crate) state: &'static str,
    /// Whether payloads are shown: output, failure, custom status and values.
    pub(crate) payloads: bool,
    pub(crate) output: Option<String>,
    pub(crate) failure: Option<Failure>,
    pub(crate) custom_status: Option<String>,
    pub(crate) custom_status_version: u64,
    pub(crate) kv: Vec<KeyValue>,
    /// The number of executions that the store keeps.
    pub(crate) executions: usize,
    pub(crate) held: Option<Held>,
    pub(crate) why: Why,
    /// The operations without an outcome, in the order in which they started; empty for an instance that has ended.
    pub(crate) waits: Vec<Awaited>,
}

/// The failure of an instance.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Failure {
    pub(crate) category: String,
    /// Null if payloads are hidden.
    pub(crate) message: Option<String>,
    /// The error as it is stored; null if payloads are hidden.
    #[schema(value_type = Option<Object>)]
    pub(crate) details: Option<Value>,
}

/// A key and its value.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeyValue {
    pub(crate) key: String,
    /// Null if payloads are hidden.
    pub(crate) value: Option<String>,
    pub(crate) bytes: usize,
}

/// Keys and values in their order.
pub(crate) fn key_values(values: BTreeMap<String, String>, payloads: bool) -> Vec<KeyValue> {
    let shown = |(key, value): (String, String)| KeyValue {
        key,
        bytes: value.len(),
        value: payloads.then_some(value),
    };
    values.into_iter().map(shown).collect()
}

/// One instance, with the operations that it waits for.
pub(crate) async fn detail_with_waits(app: &App, id: &str, payloads: bool) -> Result<Detail, Problem> {
    let mut detail = detail(app, id, payloads).await?;
    if detail.state == "running" {
        detail.waits = awaited(&app.client, id, detail.instance.execution).await?;
    }
    Ok(detail)
}

/// One instance, without the operations that it waits for: they take a read of the whole history.
pub(crate) async fn detail(app: &App, id: &str, payloads: bool) -> Result<Detail, Problem> {
    let client = &app.client;
    // The row is read after the state: if the instance ends between the two, the page still follows it, and is read again.
    let (state, output, failure, custom_status, custom_status_version) =
        match client.get_orchestration_status(id).await? {
            OrchestrationStatus::NotFound => return Err(Problem::no_instance(id)),
            OrchestrationStatus::Running { custom_status, custom_status_version } => {
                ("running", None, None, custom_status, custom_status_version)
            }
            OrchestrationStatus::Completed { output, custom_status, custom_status_version } => {
                ("completed", Some(output), None, custom_status, custom_status_version)
            }
            OrchestrationStatus::Failed { details, custom_status, custom_status_version } => {
                ("failed", None, Some(failed(&details, payloads)), custom_status, custom_status_version)
            }
        };
    let info = info(client, id).await?;
    let kv: BTreeMap<String, String> = client.get_kv_all_values(id).await?.into_iter().collect();
    Ok(Detail {
        instance: info.into(),
        state,
        payloads,
        output: output.filter(|_| payloads),
        failure,
        custom_status: custom_status.filter(|_| payloads),
        custom_status_version,
        kv: key_values(kv, payloads),
        executions: client.list_executions(id).await?.len(),
        held: client.held_instance(id).await?.map(Held::from),
        why: why(app, id).await?,
        waits: Vec::new(),
    })
}

fn failed(details: &ErrorDetails, payloads: bool) -> Failure {
    Failure {
        category: details.category().to_string(),
        message: payloads.then(|| details.display_message()),
        details: payloads.then(|| serde_json::to_value(details).unwrap_or_default()),
    }
}
