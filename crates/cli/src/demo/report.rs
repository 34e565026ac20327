//! The lines that a worker writes to its supervisor: which activities it runs.

use outlast::ActivityContext;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// One line of a worker's standard output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    /// The worker has begun to run an activity.
    Begins(Work),
    /// The activity has returned. Its outcome may not be committed yet.
    Returns { key: String },
}

/// A delivery of an activity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Work {
    /// The key that all deliveries of the activity share.
    pub(super) key: String,
    pub(super) activity: String,
    pub(super) instance: String,
}

/// The report of a running activity: its end is reported when the value is dropped.
pub(super) struct Running(String);

impl Running {
    pub(super) fn begin(ctx: &ActivityContext) -> Self {
        let key = ctx.idempotency_key().to_string();
        write(&Report::Begins(Work {
            key: key.clone(),
            activity: ctx.activity_name().to_string(),
            instance: ctx.instance_id().to_string(),
        }));
        Self(key)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        write(&Report::Returns { key: std::mem::take(&mut self.0) });
    }
}

/// A report that cannot be written is left out: the supervisor is dead, and the worker is about to notice it.
fn write(report: &Report) {
    if let Ok(mut line) = serde_json::to_string(report) {
        line.push('\n');
        let mut out = io::stdout().lock();
        let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    }
}
