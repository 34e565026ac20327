//! `outlast metrics`: the figures of a store.

use crate::args::Common;
use crate::failure::Failure;
use crate::output::{print_list, table, write};
use crate::store::{self, Intent};
use clap::Args as ClapArgs;
use outlast::client::Client;
use outlast::providers::{OldestDue, QueueBacklog};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

/// The most dead letters that are counted: a store lists them with their texts.
const MOST_DEAD_LETTERS: usize = 100;

/// Print the figures of a store once.
///
/// The names are those of `/metrics` of `outlast serve`. --prometheus prints the text format of Prometheus, for the textfile collector of
/// its node exporter.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  outlast metrics --store shop.db
  outlast metrics --store shop.db --prometheus > /var/lib/node_exporter/outlast.prom")]
pub(crate) struct MetricsArgs {
    #[command(flatten)]
    common: Common,
    /// Print the text format of Prometheus
    #[arg(long, conflicts_with = "output")]
    prometheus: bool,
}

pub(crate) async fn run(args: MetricsArgs) -> Result<(), Failure> {
    let client = store::open(&args.common.store.place()?, Intent::Read).await?;
    let figures = Figures { metrics: read(&client).await? };
    match args.prometheus {
        true => write(&figures.prometheus()),
        false => print_list(args.common.output, &figures, &figures.metrics, None, Figures::text),
    }
}

#[derive(Serialize)]
struct Figures {
    metrics: Vec<Metric>,
}

#[derive(Serialize)]
struct Metric {
    name: &'static str,
    labels: BTreeMap<&'static str, &'static str>,
    value: Value,
    #[serde(skip)]
    help: &'static str,
}

#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
enum Value {
    Count(u64),
    Seconds(f64),
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Seconds(seconds) => seconds.fmt(f),
        }
    }
}

impl Metric {
    fn labels(&self) -> String {
        let labels: Vec<String> =
            self.labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
        labels.join(",")
    }
}

async fn read(client: &Client) -> Result<Vec<Metric>, Failure> {
    use Value::{Count, Seconds};
    let totals = client.get_system_metrics().await?;
    let gauges = client.get_gauges().await?;
    let oldest = client.oldest_due().await?;
    let held = client.count_held().await?;
    let dead_letters = client.list_dead_letters(MOST_DEAD_LETTERS).await?.len() as u64;
    let mut metrics = Vec::new();
    let mut add = |name, help, labels: &[(&'static str, &'static str)], value| {
        metrics.push(Metric { name, help, labels: labels.iter().copied().collect(), value });
    };
    let instances = [
        ("running", totals.running_instances),
        ("completed", totals.completed_instances),
        ("failed", totals.failed_instances),
    ];
    for (status, count) in instances {
        let help = "Instances by the status of their current execution.";
        add("outlast_instances", help, &[("status", status)], Count(count));
    }
    let queues = [
        (
            "orchestrator",
            gauges.orchestrator_queue,
            gauges.orchestrator_backlog,
            held.map(|held| held.messages),
        ),
        ("worker", gauges.worker_queue, gauges.worker_backlog, None),
    ];
    for (queue, waiting, backlog, held) in queues {
        for (state, count) in states(waiting, backlog).into_iter().chain(held.map(|held| ("held", held))) {
            let help = "Messages and activities that wait, by queue and state.";
            add("outlast_queue_messages", help, &[("queue", queue), ("state", state)], Count(count));
        }
    }
    if let Some(OldestDue { message_ms, activity_ms }) = oldest {
        let help = "The longest wait of an item that a runtime may take now; 0 without such an item.";
        for (queue, waited_ms) in [("orchestrator", message_ms), ("worker", activity_ms)] {
            let seconds = waited_ms.unwrap_or(0) as f64 / 1_000.0;
            add("outlast_queue_oldest_seconds", help, &[("queue", queue)], Seconds(seconds));
        }
    }
    if let Some(held) = held {
        add("outlast_held_instances", "Paused and parked instances.", &[], Count(held.instances));
    }
    add("outlast_dead_letters", "Dead letters, counted up to 100.", &[], Count(dead_letters));
    Ok(metrics)
}

/// A store that does not tell delayed items apart reports all of them as due.
fn states(waiting: u64, backlog: Option<QueueBacklog>) -> Vec<(&'static str, u64)> {
    match backlog {
        Some(backlog) => vec![("due", backlog.due), ("delayed", backlog.delayed)],
        None => vec![("due", waiting)],
    }
}

impl Figures {
    fn text(&self) -> String {
        let row = |metric: &Metric| {
            vec![metric.name.to_string(), metric.labels().replace('"', ""), metric.value.to_string()]
        };
        table(&["METRIC", "LABELS", "VALUE"], &self.metrics.iter().map(row).collect::<Vec<_>>())
    }

    fn prometheus(&self) -> String {
        let mut text = String::new();
        let mut last = "";
        for metric in &self.metrics {
            let Metric { name, help, value, .. } = metric;
            if *name != last {
                text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} gauge\n"));
            }
            last = name;
            let labels = match metric.labels() {
                none if none.is_empty() => none,
                labels => format!("{{{labels}}}"),
            };
            text.push_str(&format!("{name}{labels} {value}\n"));
        }
        text
    }
}
