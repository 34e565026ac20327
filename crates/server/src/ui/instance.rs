//! The page of one instance.

use super::chart::{Chart, MOST_ROWS};
use super::list::{tone, word};
use super::{Frame, Moment, html};
use crate::access::Caller;
use crate::api::Asked;
use crate::app::{App, Shared};
use crate::extract::{InstanceId, Params};
use crate::link::encoded;
use crate::problem::Problem;
use crate::view::{self, Detail, EventPage, EventQuery, Pending, StateView, Tree};
use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use outlast::lens::{Operation, span};
use outlast::providers::{Clock, SystemClock};
use serde::Deserialize;

const TABS: [&str; 5] = ["timeline", "events", "state", "pending", "tree"];
/// The events of a page.
const EVENTS: usize = 100;

/// The parameters of the page. Every state of the page is in its address.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Shown {
    tab: Option<String>,
    execution: Option<u64>,
    /// The event of the tab `state`.
    at: Option<u64>,
    after: Option<u64>,
    #[serde(default)]
    tries: bool,
}

#[derive(Template)]
#[template(path = "instance.html")]
struct Page {
    frame: Frame,
    detail: Detail,
    tone: &'static str,
    age: String,
    created: Moment,
    updated: Moment,
    parent: Option<(String, String)>,
    /// The address of the page without parameters.
    here: String,
    /// The address of the API without parameters.
    api: String,
    tabs: Vec<Tab>,
    execution: u64,
    executions: Vec<(u64, String)>,
    /// The other parameters of the addresses of this tab.
    keep: String,
    payloads: bool,
    toggle: String,
    body: Body,
}

struct Tab {
    name: &'static str,
    title: String,
    href: String,
    is_chosen: bool,
}

/// The content of the chosen tab.
enum Body {
    Timeline { chart: Chart, from: Moment, to: Moment, tries: bool },
    Events { page: EventPage, next: Option<String>, is_first: bool },
    State { state: StateView, open: Vec<Open>, before: Option<u64>, after: Option<u64>, last: u64 },
    Pending(Option<Pending>),
    Tree { tree: Tree, rows: Vec<TreeRow> },
}

struct Open {
    event: u64,
    kind: &'static str,
    name: String,
    since: Moment,
}

struct TreeRow {
    href: String,
    /// The indentation, at most 8.
    indent: usize,
    id: String,
    orchestration: String,
    status: String,
    tone: &'static str,
}

pub(super) async fn page(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    InstanceId(id): InstanceId,
    Params(shown): Params<Shown>,
    Params(asked): Params<Asked>,
) -> Result<Response, Problem> {
    let payloads = asked.granted(&caller)?;
    let detail = view::detail(&app, &id, payloads).await?;
    let found = view::execution(&app.client, &id, shown.execution).await?;
    let here = format!("{}/instances/{}", app.options.base_path, encoded(&id));
    let chosen = TABS.into_iter().find(|tab| Some(*tab) == shown.tab.as_deref()).unwrap_or(TABS[0]);
    let execution = found.execution;
    let events = app.client.get_execution_info(&id, execution).await?.event_count;
    let keep = {
        let mut keep = format!("execution={execution}");
        if payloads {
            keep.push_str("&payloads=true");
        }
        keep
    };
    let body =
        body(&app, &id, execution, &shown, chosen, payloads, &format!("{here}?tab={chosen}&{keep}")).await?;
    let title = |name: &str| match name {
        "events" => format!("Events {events}"),
        other => other[..1].to_uppercase() + &other[1..],
    };
    let tab = |name: &'static str| Tab {
        name,
        title: title(name),
        href: format!("{here}?tab={name}&{keep}"),
        is_chosen: name == chosen,
    };
    let newest = found.kept.iter().rev().take(20).copied();
    let until = if detail.state == "running" { SystemClock.now_ms() } else { detail.instance.updated_at_ms };
    let parent = detail.instance.parent.clone();
    let frame =
        Frame::new(&app, &caller, &headers, "instances", id.as_str()).with_command(command(chosen, &id));
    // A state of the past does not change.
    let frame =
        if detail.state == "running" && shown.at.is_none() { frame.live_instance(&id) } else { frame };
    let page = Page {
        tone: tone(&detail.instance.status),
        age: span(until.saturating_sub(detail.instance.created_at_ms)),
        created: Moment::of(detail.instance.created_at_ms),
        updated: Moment::of(detail.instance.updated_at_ms),
        parent: parent.map(|id| (format!("{}/instances/{}", app.options.base_path, encoded(&id)), id)),
        api: format!("{}/api/v1/instances/{}", app.options.base_path, encoded(&id)),
        tabs: TABS.map(tab).into(),
        executions: newest.map(|one| (one, format!("{here}?tab={chosen}&execution={one}"))).collect(),
        toggle: match payloads {
            true => format!("{here}?tab={chosen}&execution={execution}"),
            false => format!("{here}?tab={chosen}&execution={execution}&payloads=true"),
        },
        here,
        execution,
        keep,
        payloads,
        body,
        detail,
        frame,
    };
    Ok(html(StatusCode::OK, &page))
}

fn command(tab: &str, id: &str) -> String {
    let verb = match tab {
        "timeline" => "timeline",
        "events" => "history",
        _ => "show",
    };
    format!("instance {verb} {}", word(id))
}

async fn body(
    app: &App,
    id: &str,
    execution: u64,
    shown: &Shown,
    chosen: &str,
    payloads: bool,
    address: &str,
) -> Result<Body, Problem> {
    let base = &app.options.base_path;
    Ok(match chosen {
        "events" => {
            let query = EventQuery { after: shown.after, limit: Some(EVENTS), kinds: None };
            let page = view::events(&app.client, id, execution, &query, payloads).await?;
            let next = page.next.map(|next| format!("{address}&after={next}"));
            Body::Events { page, next, is_first: shown.after.is_none() }
        }
        "state" => {
            let history = view::history(&app.client, id, Some(execution)).await?;
            let state = view::state(&app.client, id, &history, shown.at, payloads).await?;
            let last = history.events.last().map_or(0, |event| event.event_id);
            let open = state.open.iter().map(|open| {
                let (kind, name) = described(&open.operation);
                Open { event: open.event_id, kind, name, since: Moment::of(open.since_ms) }
            });
            let (before, after) = (state.event.checked_sub(1).filter(|at| *at > 0), Some(state.event + 1));
            Body::State { open: open.collect(), before, after: after.filter(|at| *at <= last), last, state }
        }
        "pending" => Body::Pending(view::pending(app, id).await.ok()),
        "tree" => {
            let tree = view::tree(app, id).await?;
            let rows = tree.items.iter().map(|node| TreeRow {
                href: format!("{base}/instances/{}", encoded(&node.instance.id)),
                indent: node.depth.min(8),
                id: node.instance.id.clone(),
                orchestration: node.instance.orchestration.clone(),
                status: node.instance.status.clone(),
                tone: tone(&node.instance.status),
            });
            Body::Tree { rows: rows.collect(), tree }
        }
        _ => {
            let history = view::history(&app.client, id, Some(execution)).await?;
            let found = view::timeline(id, &history, !shown.tries, Some(MOST_ROWS)).timeline;
            let chart = Chart::of(&found, base);
            Body::Timeline {
                chart,
                from: Moment::of(found.from_ms),
                to: Moment::of(found.to_ms),
                tries: shown.tries,
            }
        }
    })
}

fn described(operation: &Operation) -> (&'static str, String) {
    match operation {
        Operation::Activity { name, .. } => ("activity", name.clone()),
        Operation::Timer { fire_at_ms } => ("timer", format!("due {}", outlast::lens::moment(*fire_at_ms))),
        Operation::Event { name } => ("event", name.clone()),
        Operation::Queue { name } => ("queue", name.clone()),
        Operation::Child { instance, .. } => ("child", instance.clone()),
    }
}

impl Page {
    /// The dialogs that ask for a reason only: verb of the API, title, and effect.
    fn acts(&self) -> [(&'static str, &'static str, &'static str); 4] {
        [
            (
                "pause",
                "Pause the instance",
                "No turn of the instance runs until it is resumed. Its messages wait in their order.",
            ),
            ("resume", "Resume the instance", "The messages that wait are delivered, in their order."),
            (
                "cancel",
                "Cancel the instance",
                "The instance is asked to stop at its next turn. Code that answers requests to cancel may undo its work first.",
            ),
            (
                "terminate",
                "Terminate the instance",
                "The instance ends at its next turn. No code of its orchestration runs any more, also no code that undoes its work.",
            ),
        ]
    }
}
