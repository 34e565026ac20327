//! The list of instances.

use super::{Frame, Moment, html};
use crate::access::{Caller, Scope};
use crate::app::Shared;
use crate::extract::Params;
use crate::link::{encoded, query};
use crate::problem::Problem;
use crate::view::{self, Instance, ListQuery};
use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::json;

/// The instances of a page.
const PAGE: u32 = 50;

#[derive(Template)]
#[template(path = "instances.html")]
struct List {
    frame: Frame,
    chips: Vec<Chip>,
    rows: Vec<Row>,
    query: ListQuery,
    /// The selected status.
    status: String,
    next: Option<String>,
    is_filtered: bool,
    is_first: bool,
    /// Whether the store looked at as many instances as it may for one page, before the page was full.
    is_short: bool,
    /// The filter of an operation over all instances that match, as JSON.
    filter: String,
    /// The actions of operations, and their titles.
    verbs: Vec<(&'static str, &'static str)>,
}

/// A status to choose.
struct Chip {
    name: &'static str,
    /// The field of the counts.
    count: &'static str,
    href: String,
    is_chosen: bool,
}

struct Row {
    href: String,
    instance: Instance,
    updated: Moment,
    /// The style of the status.
    tone: &'static str,
}

/// The style of a status.
pub(super) fn tone(status: &str) -> &'static str {
    match status {
        "Running" | "ContinuedAsNew" => "run",
        "Completed" => "ok",
        "Failed" => "bad",
        _ => "quiet",
    }
}

pub(super) async fn page(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Params(query): Params<ListQuery>,
) -> Result<Response, Problem> {
    let query = ListQuery { limit: Some(query.limit.unwrap_or(PAGE)), ..query };
    let status = query.stored_status()?.unwrap_or_default();
    let page = view::list(&app, &query).await?;
    let base = &app.options.base_path;
    let is_short = page.next.is_some() && page.items.len() < query.limit.unwrap_or(PAGE) as usize;
    let row = |instance: Instance| Row {
        href: format!("{base}/instances/{}", encoded(&instance.id)),
        updated: Moment::of(instance.updated_at_ms),
        tone: tone(&instance.status),
        instance,
    };
    let is_given = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
    let is_first = !is_given(&query.after);
    let frame =
        Frame::new(&app, &caller, &headers, "instances", "Instances").with_command(command(&query, &status));
    let list = List {
        chips: chips(base, &query, &status),
        rows: page.items.into_iter().map(row).collect(),
        next: page.next.map(|next| format!("{base}/instances?{}", query.address(&next))),
        is_filtered: !status.is_empty()
            || is_given(&query.name)
            || is_given(&query.prefix)
            || is_given(&query.parent),
        is_first,
        is_short,
        filter: filter(&query, &status),
        verbs: verbs(&caller),
        status,
        query,
        // Later pages do not move while they are read.
        frame: if is_first { frame.live("instances") } else { frame },
    };
    Ok(html(StatusCode::OK, &list))
}

/// The conditions of the list, for an operation.
fn filter(query: &ListQuery, status: &str) -> String {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    json!({
        "status": Some(status).filter(|status| !status.is_empty()),
        "name": given(&query.name),
        "prefix": given(&query.prefix),
        "parent": given(&query.parent),
        "created_from_ms": query.created_from_ms,
        "created_before_ms": query.created_before_ms,
    })
    .to_string()
}

/// The actions that the caller may use.
fn verbs(caller: &Caller) -> Vec<(&'static str, &'static str)> {
    let all = [
        ("pause", "Pause"),
        ("resume", "Resume"),
        ("cancel", "Cancel"),
        ("terminate", "Terminate"),
        ("delete", "Delete"),
    ];
    all.into_iter().filter(|(verb, _)| *verb != "delete" || caller.scopes.allow(Scope::Admin)).collect()
}

fn chips(base: &str, filter: &ListQuery, status: &str) -> Vec<Chip> {
    let chip = |(name, count, value): (&'static str, &'static str, &'static str)| {
        let others = query([
            ("status", Some(value.to_string())),
            ("name", filter.name.clone()),
            ("prefix", filter.prefix.clone()),
            ("parent", filter.parent.clone()),
        ]);
        let href = if others.is_empty() {
            format!("{base}/instances")
        } else {
            format!("{base}/instances?{others}")
        };
        Chip { name, count, href, is_chosen: value == status }
    };
    [
        ("All", "total", ""),
        ("Running", "running", "Running"),
        ("Failed", "failed", "Failed"),
        ("Completed", "completed", "Completed"),
    ]
    .map(chip)
    .into()
}

/// The command that shows the same list.
fn command(filter: &ListQuery, status: &str) -> String {
    let mut command = "instance list".to_string();
    let status = Some(status.to_lowercase());
    for (option, value) in [("status", &status), ("name", &filter.name), ("prefix", &filter.prefix)] {
        if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
            command.push_str(&format!(" --{option} {}", word(value)));
        }
    }
    command
}

/// A word of a shell command.
pub(super) fn word(text: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_.:/@".contains(char);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_string(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}
