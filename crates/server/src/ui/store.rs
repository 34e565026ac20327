//! The pages of the whole store: queues, dead letters, audit, system.

use super::plot::{Plot, plots};
use super::{Frame, Moment, html};
use crate::access::Caller;
use crate::api::Asked;
use crate::app::Shared;
use crate::extract::Params;
use crate::link::encoded;
use crate::problem::Problem;
use crate::view::{self, AuditPage, DeadLetters, Nodes, Queues, System};
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
}

/// The texts of a node for people.
struct NodeRow {
    seen: String,
    state: String,
}

impl NodeRow {
    fn of(node: &view::NodeView) -> Self {
        let end = span(node.lost_leases_end_in_ms);
        let state = match (node.is_lost(), node.lost_leases) {
            (false, _) => "live".to_string(),
            (true, 0) => "lost".to_string(),
            (true, 1) => format!("lost: 1 lease ends in {end}"),
            (true, count) => format!("lost: {count} leases end in {end}"),
        };
        Self { seen: span(node.seen_ms_ago), state }
    }
}

pub(super) async fn queues(
    State(app): State<Shared>,
    Extension(caller): Known,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let frame = Frame::new(&app, &caller, &headers, "queues", "Queues").live("system");
    let nodes = view::nodes(&app).await?;
    let rows = nodes.items.iter().map(NodeRow::of).collect();
    Ok(html(StatusCode::OK, &QueuesPage { frame, queues: view::queues(&app).await?, nodes, rows }))
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
