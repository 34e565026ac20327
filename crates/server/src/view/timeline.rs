//! The timeline of an execution.

use super::History;
use outlast::lens::{Timeline, TimelineOptions};
use outlast::providers::{Clock, SystemClock};
use serde::Serialize;
use utoipa::ToSchema;

/// The spans of an execution with folded retries, idle gaps, lanes and bins. Times are milliseconds since the Unix epoch.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TimelineView {
    pub(crate) instance: String,
    pub(crate) execution: u64,
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub(crate) timeline: Timeline,
}

/// The timeline. With more than `most_spans` operations, those of one name are one span.
pub(crate) fn timeline(
    id: &str,
    history: &History,
    folds_retries: bool,
    most_spans: Option<usize>,
) -> TimelineView {
    let mut options = TimelineOptions::default();
    options.folds_retries = folds_retries;
    if let Some(most) = most_spans {
        options.most_spans = most;
    }
    let timeline = outlast::lens::timeline(&history.events, SystemClock.now_ms(), &options);
    TimelineView { instance: id.to_string(), execution: history.execution, timeline }
}
