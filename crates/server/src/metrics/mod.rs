//! `/metrics` in the text format of Prometheus.

mod requests;
mod text;

pub(crate) use requests::Requests;

use crate::app::{App, Shared, TOTALS_MS};
use crate::problem::Problem;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use outlast::providers::{HeldCounts, OldestDue, QueueBacklog, StoreGauges};
use text::Text;

/// The most dead letters that are counted: the store lists them with their texts.
const MOST_DEAD_LETTERS: usize = 100;

/// The figures of the store beside its totals.
#[derive(Clone)]
pub(crate) struct Figures {
    gauges: StoreGauges,
    /// `None` if the store does not look.
    oldest: Option<OldestDue>,
    held: Option<HeldCounts>,
    dead_letters: u64,
    /// Live and lost nodes; `None` if the store keeps no reports.
    nodes: Option<(u64, u64)>,
}

impl Figures {
    async fn read(app: &App) -> Result<Self, Problem> {
        let nodes = app.client.node_records().await?.map(|records| {
            let lost = records.iter().filter(|record| record.is_lost()).count();
            ((records.len() - lost) as u64, lost as u64)
        });
        Ok(Self {
            gauges: app.client.get_gauges().await?,
            oldest: app.client.oldest_due().await?,
            held: app.client.count_held().await?,
            dead_letters: app.client.list_dead_letters(MOST_DEAD_LETTERS).await?.len() as u64,
            nodes,
        })
    }
}

/// The figures of the server, and of the store if it answers.
pub(crate) async fn metrics(State(app): State<Shared>) -> Response {
    let mut text = Text::default();
    let store = store(&app, &mut text).await;
    text.gauge("outlast_store_up", "Whether the store answers.", [("", u64::from(store.is_ok()))]);
    text.gauge("outlast_sse_clients", "Open streams and waits.", [("", app.streams.in_use())]);
    app.seen.render(&mut text);
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text.finish()).into_response()
}

async fn store(app: &App, text: &mut Text) -> Result<(), Problem> {
    let totals = app.totals().await?.metrics;
    let (_, figures) = app.figures.get(TOTALS_MS, Figures::read(app)).await?;
    text.gauge(
        "outlast_instances",
        "Instances by the status of their current execution.",
        [
            ("status=\"running\"", totals.running_instances),
            ("status=\"completed\"", totals.completed_instances),
            ("status=\"failed\"", totals.failed_instances),
        ],
    );
    let Figures { gauges, oldest, held, dead_letters, nodes } = figures;
    text.gauge(
        "outlast_queue_messages",
        "Messages and activities that wait, by queue and state.",
        backlog("orchestrator", gauges.orchestrator_queue, gauges.orchestrator_backlog)
            .into_iter()
            .chain(backlog("worker", gauges.worker_queue, gauges.worker_backlog))
            .chain(held.map(|held| (labels("orchestrator", "held"), held.messages))),
    );
    if let Some(OldestDue { message_ms, activity_ms }) = oldest {
        let name = "outlast_queue_oldest_seconds";
        text.head(
            name,
            "gauge",
            "The longest wait of an item that a runtime may take now; 0 without such an item.",
        );
        for (queue, waited_ms) in [("orchestrator", message_ms), ("worker", activity_ms)] {
            let seconds = waited_ms.unwrap_or(0) as f64 / 1_000.0;
            text.line(name, format!("queue=\"{queue}\""), seconds);
        }
    }
    if let Some(held) = held {
        text.gauge("outlast_held_instances", "Paused and parked instances.", [("", held.instances)]);
    }
    if let Some((live, lost)) = nodes {
        text.gauge(
            "outlast_nodes",
            "Nodes by state. A node that reports no more is lost until its report is removed.",
            [("state=\"live\"", live), ("state=\"lost\"", lost)],
        );
    }
    text.gauge("outlast_dead_letters", "Dead letters, counted up to 100.", [("", dead_letters)]);
    Ok(())
}

fn labels(queue: &str, state: &str) -> String {
    format!("queue=\"{queue}\",state=\"{state}\"")
}

/// A store that does not tell delayed items apart reports all of them as due.
fn backlog(queue: &str, waiting: u64, backlog: Option<QueueBacklog>) -> Vec<(String, u64)> {
    match backlog {
        Some(backlog) => {
            vec![(labels(queue, "due"), backlog.due), (labels(queue, "delayed"), backlog.delayed)]
        }
        None => vec![(labels(queue, "due"), waiting)],
    }
}
