//! The result of one process, as a line of JSON.

use serde_json::{Map, Value, json};

/// The figures, and whether all instances ended: without all instances, the figures are not valid.
pub(crate) struct Outcome {
    pub(crate) durability: &'static str,
    pub(crate) expected: usize,
    /// Ended with the right output.
    pub(crate) completed: usize,
    pub(crate) failed: usize,
    /// Completed with another output.
    pub(crate) wrong: usize,
    figures: Map<String, Value>,
}

impl Outcome {
    pub(crate) fn new(durability: &'static str, expected: usize) -> Self {
        Self { durability, expected, completed: 0, failed: 0, wrong: 0, figures: Map::new() }
    }

    /// Counts one instance: its output, or nothing if it failed.
    pub(crate) fn ended(&mut self, output: Option<&str>, right: &str) {
        match output {
            Some(output) if output == right => self.completed += 1,
            Some(_) => self.wrong += 1,
            None => self.failed += 1,
        }
    }

    /// Adds a figure; a value that is not finite is left out.
    pub(crate) fn figure(&mut self, metric: impl Into<String>, value: f64, unit: &str) {
        if value.is_finite() {
            self.figures.insert(metric.into(), json!({ "value": value, "unit": unit }));
        }
    }

    pub(crate) fn line(&self) -> Value {
        json!({
            "durability": self.durability,
            "ok": self.completed == self.expected,
            "expected": self.expected,
            "completed": self.completed,
            "failed": self.failed,
            "wrong": self.wrong,
            "figures": self.figures,
        })
    }
}
