//! Metrics, spans, log records, and the page that lists them.

mod children;
mod needs_postgres;
mod page;
mod source;
mod stores;

use metrics_util::MetricKind;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use std::collections::BTreeMap;

/// A recorded metric with one set of labels.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) kind: MetricKind,
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    /// The values of a histogram; the one value of a counter or a gauge.
    pub(crate) values: Vec<f64>,
}

impl Row {
    /// Whether this is the metric of this name with at least these labels.
    pub(crate) fn is(&self, name: &str, labels: &[(&str, &str)]) -> bool {
        self.name == name
            && labels.iter().all(|(label, value)| self.labels.get(*label).is_some_and(|is| is == value))
    }
}

/// Runs a test on one thread with paused time, so that its recorder records only this test.
pub(crate) fn recorded(test: impl Future<Output = ()>) -> Vec<Row> {
    recorded_on(tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true), test)
}

/// Runs a test on one thread in real time, for stores that answer from other threads or processes.
pub(crate) fn recorded_in_real_time(test: impl Future<Output = ()>) -> Vec<Row> {
    recorded_on(tokio::runtime::Builder::new_current_thread().enable_all(), test)
}

fn recorded_on(runtime: &mut tokio::runtime::Builder, test: impl Future<Output = ()>) -> Vec<Row> {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || runtime.build().unwrap().block_on(test));
    let rows = snapshotter.snapshot().into_vec().into_iter().map(|(key, _, _, value)| Row {
        kind: key.kind(),
        name: key.key().name().to_string(),
        labels: key
            .key()
            .labels()
            .map(|label| (label.key().to_string(), label.value().to_string()))
            .collect(),
        values: match value {
            DebugValue::Counter(count) => vec![count as f64],
            DebugValue::Gauge(value) => vec![value.into_inner()],
            DebugValue::Histogram(values) => values.into_iter().map(|value| value.into_inner()).collect(),
        },
    });
    rows.collect()
}
