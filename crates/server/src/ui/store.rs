//! The pages of the whole store: queues, dead letters, audit, system.

use super::plot::{Plot, plots};
use super::{Frame, Moment, html};
use crate::access::Caller;
use crate::api::Asked;
use crate::app::{App, Shared};
use crate::extract::Params;
use crate::link::encoded;
use crate::problem::Problem;
use crate::view::{
    self, AuditPage, DeadLetters, LeaseView, NodeView, Nodes, QueueMessages, Queues, System, TagsView,
};
use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use outlast::lens::span;
use serde::Deserialize;

type Known = Extension<Caller>;

#[derive(Template)]
#[template(path = "queues.html")]
struct QueuesPage {
    frame: Frame,
    queues: Queues,
    nodes: Nodes,
    rows: Vec<NodeRow>,
    list: Option<QueueList>,
}

/// A page of the items of the queue that the address names.
struct QueueList {
    page: QueueMessages,
    /// The addresses of the instances.
    hrefs: Vec<String>,
    next: Option<String>,
}

/// The items that the address asks for.
#[derive(Deserialize)]
pub(super) struct Shown {
    items: Option<String>,
    after: Option<String>,
}

/// The leases of a node that the screen shows.
const MOST_WORK: usize = 3;

/// The texts of a node for people.
struct NodeRow {
    tone: &'static str,
    seen: String,
    /// The leases of a lost node that have not ended.
    leases: String,
    takes: String,
    works: Vec<Work>,
    /// Leases that are not shown.
    more: u64,
}

/// The instance of a lease.
struct Work {
    instance: String,
    href: String,
}

impl NodeRow {
    fn of(node: &NodeView, base: &str) -> Self {
        let end = span(node.lost_leases_end_in_ms);
        let work = |lease: &LeaseView| Work {
            instance: lease.instance.clone(),
            href: format!("{base}/instances/{}", encoded(&lease.instance)),
        };
        let works: Vec<Work> = node.leases.iter().take(MOST_WORK).map(work).collect();
        Self {
            tone: if node.is_lost() { "bad" } else { "ok" },
            seen: span(node.seen_ms_ago),
            leases: match (node.is_lost(), node.lost_leases) {
                (false, _) | (true, 0) => String::new(),
                (true, 1) => format!("1 lease ends in {end}"),
                (true, count) => format!("{count} leases end in {end}"),
            },
            takes: takes(&node.tags, node.activities.limit),
            more: node.omitted_leases + (node.leases.len() - works.len()) as u64,
            works,
        }
    }
}

/// The activities that a node takes.
fn takes(tags: &TagsView, limit: u64) -> String {
    let named = tags.named.join(", ");
    match (limit > 0 && (tags.any || tags.untagged || !named.is_empty()), tags.any, tags.untagged) {
        (false, ..) => "no activities".to_string(),
        (true, true, _) => "all activities".to_string(),
        (true, false, true) if named.is_empty() => "activities without a tag".to_string(),
        (true, false, true) => format!("{named}, and without a tag"),
        (true, false, false) => named,
    }
}

pub(super) async fn queues(
    State(app): State<Shared>,
    Extension(caller): Known,
    headers: HeaderMap,
    Params(shown): Params<Shown>,
) -> Result<Response, Problem> {
    let frame = Frame::new(&app, &caller, &headers, "queues", "Queues").live("system");
    let (queues, nodes) = view::queues_and_nodes(&app).await?;
    let rows = nodes.items.iter().map(|node| NodeRow::of(node, &app.options.base_path)).collect();
    let list = match &shown.items {
        Some(queue) => Some(list(&app, queue, shown.after.as_deref()).await?),
        None => None,
    };
    Ok(html(StatusCode::OK, &QueuesPage { frame, queues, nodes, rows, list }))
}

async fn list(app: &App, queue: &str, after: Option<&str>) -> Result<QueueList, Problem> {
    let page = view::queue_messages(app, view::queue_of(queue)?, after, None).await?;
    let base = &app.options.base_path;
    let next = page.next.as_deref();
    let next = next.map(|next| format!("{base}/queues?items={}&after={}", page.queue, encoded(next)));
    let href =
        |found: &view::QueueMessage| format!("{base}/instances/{}?tab=pending", encoded(&found.instance));
    Ok(QueueList { hrefs: page.items.iter().map(href).collect(), next, page })
}

#[derive(Template)]
#[template(path = "dead_letters.html")]
struct DeadLettersPage {
    frame: Frame,
    letters: DeadLetters,
    rows: Vec<LetterRow>,
    next: Option<String>,
}

struct LetterRow {
    href: String,
    at: Moment,
}

pub(super) async fn dead_letters(
    State(app): State<Shared>,
    Extension(caller): Known,
    headers: HeaderMap,
    Params(asked): Params<Asked>,
    Params(Before { before }): Params<Before>,
) -> Result<Response, Problem> {
    let payloads = asked.granted(&caller)?;
    let letters = view::dead_letters(&app, before, None, payloads).await?;
    let base = &app.options.base_path;
    let next = letters.next.map(|next| format!("{base}/dead-letters?before={next}&payloads={payloads}"));
    let row = |letter: &view::DeadLetterView| LetterRow {
        href: format!("{base}/instances/{}", encoded(letter.instance.as_deref().unwrap_or_default())),
        at: Moment::of(letter.at_ms),
    };
    let rows = letters.items.iter().map(row).collect();
    let frame = Frame::new(&app, &caller, &headers, "dead-letters", "Dead letters").live("system");
    Ok(html(StatusCode::OK, &DeadLettersPage { frame, letters, rows, next }))
}

#[derive(Template)]
#[template(path = "audit.html")]
struct Audit {
    frame: Frame,
    page: AuditPage,
    times: Vec<Moment>,
    next: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Before {
    before: Option<u64>,
}

pub(super) async fn audit(
    State(app): State<Shared>,
    Extension(caller): Known,
    headers: HeaderMap,
    Params(Before { before }): Params<Before>,
) -> Result<Response, Problem> {
    let page = view::audit(&app, before, None).await?;
    let next = page.next.map(|next| format!("{}/audit?before={next}", app.options.base_path));
    let frame = Frame::new(&app, &caller, &headers, "audit", "Audit");
    let times = page.items.iter().map(|record| Moment::of(record.at_ms)).collect();
    Ok(html(StatusCode::OK, &Audit { frame, page, times, next }))
}

#[derive(Template)]
#[template(path = "system.html")]
struct SystemPage {
    frame: Frame,
    system: System,
    as_of: Moment,
    plots: Vec<Plot>,
    /// The times of the first and the last sample.
    from: Moment,
    to: Moment,
}

pub(super) async fn system(
    State(app): State<Shared>,
    Extension(caller): Known,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let system = view::known_system(&app).await?;
    let samples = view::series(&app).await?.items;
    let time = |sample: Option<&view::Sample>| Moment::of(sample.map_or(0, |sample| sample.at_ms));
    let (plots, from, to) = (plots(&samples), time(samples.first()), time(samples.last()));
    let as_of = Moment::of(system.instances.as_of_ms);
    let frame = Frame::new(&app, &caller, &headers, "system", "System").live("system");
    Ok(html(StatusCode::OK, &SystemPage { frame, system, as_of, plots, from, to }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activities_of_a_node_are_named_by_their_tags() {
        let tags = |untagged, any, named: &[&str]| TagsView {
            untagged,
            any,
            named: named.iter().map(ToString::to_string).collect(),
        };
        for (tags, limit, text) in [
            (tags(true, false, &[]), 4, "activities without a tag"),
            (tags(true, false, &["gpu", "eu"]), 4, "gpu, eu, and without a tag"),
            (tags(false, false, &["gpu"]), 4, "gpu"),
            (tags(true, true, &[]), 4, "all activities"),
            (tags(false, false, &[]), 4, "no activities"),
            (tags(true, true, &[]), 0, "no activities"),
        ] {
            assert_eq!(takes(&tags, limit), text);
        }
    }
}
