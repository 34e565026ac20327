//! Steps without activities and other instances: keys, status, time, and properties of the execution.

use super::{ORCHESTRATION, TYPED_ORCHESTRATION, one_word};
use crate::program::Step;
use outlast_engine::OrchestrationContext;
use std::collections::BTreeMap;

pub(super) async fn run(context: &OrchestrationContext, step: &Step) -> Vec<String> {
    let word = match step {
        Step::Count(key, is_typed) => count(context, key, *is_typed),
        Step::Keys => keys(context),
        Step::ClearKey(key) => {
            context.clear_kv_value(key);
            format!("cleared:{}", context.get_kv_value(key).unwrap_or_default())
        }
        Step::ClearKeys => {
            context.clear_all_kv_values();
            format!("cleared:{}", context.get_kv_length())
        }
        Step::Prune => {
            let none = context.prune_kv_values_updated_before(0);
            format!("pruned:{none},{}", context.prune_kv_values_updated_before(u64::MAX))
        }
        Step::Status(status) => {
            context.set_custom_status(status);
            format!("status:{}", context.get_custom_status().unwrap_or_default())
        }
        Step::ResetStatus => {
            context.reset_custom_status();
            format!("status:{}", context.get_custom_status().unwrap_or_default())
        }
        Step::Now => one_word(context.utc_now().await.map(|_| "now".to_string())),
        Step::Guid => {
            let guid = context.new_guid().await;
            one_word(guid.map(|guid| if guid.len() == 36 { "guid".to_string() } else { guid }))
        }
        Step::Look => inspect(context),
        Step::Version => format!("v:{}", context.orchestration_version()),
        other => format!("!{other:?}_is_not_local").replace(char::is_whitespace, ""),
    };
    vec![word]
}

fn count(context: &OrchestrationContext, key: &str, is_typed: bool) -> String {
    let before = match is_typed {
        true => context.get_kv_value_typed::<u64>(key).ok().flatten(),
        false => context.get_kv_value(key).and_then(|value| value.parse().ok()),
    };
    let count = before.unwrap_or(0) + 1;
    match is_typed {
        true => context.set_kv_value_typed(key, &count),
        false => context.set_kv_value(key, count.to_string()),
    }
    format!("{key}={count}")
}

/// Reads all keys in three ways, which must agree.
fn keys(context: &OrchestrationContext) -> String {
    let values: BTreeMap<String, String> = context.get_kv_all_values().into_iter().collect();
    let names = context.get_kv_all_keys();
    if names.len() != context.get_kv_length() || !names.iter().eq(values.keys()) {
        return "keys:contradict".to_string();
    }
    let all: Vec<String> = values.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("keys:{}", all.join(","))
}

/// Reads properties of the execution. They are not durable, and must be the same in every replay.
fn inspect(context: &OrchestrationContext) -> String {
    context.trace_info("looks around");
    context.trace_debug("looks closely");
    context.trace_warn("sees something");
    context.trace_error("sees it coming");
    context.trace("info", if context.is_replaying() { "again" } else { "for the first time" });
    let name = context.orchestration_name();
    let known = name == ORCHESTRATION || name == TYPED_ORCHESTRATION;
    if !known || context.instance_id().is_empty() || context.get_system_stats().is_some() {
        return "look:wrong".to_string();
    }
    format!("look:{}{}", context.execution_id(), if context.is_logging_enabled() { "+" } else { "" })
}
