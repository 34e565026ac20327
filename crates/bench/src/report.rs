//! Prints medians and spreads, and whether targets are met.

use serde_json::json;

/// One measured figure.
pub(crate) struct Row {
    pub(crate) case: &'static str,
    pub(crate) what: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) values: Vec<f64>,
}

impl Row {
    pub(crate) fn new(case: &'static str, what: &'static str, unit: &'static str, values: Vec<f64>) -> Self {
        Self { case, what, unit, values }
    }

    pub(crate) fn median(&self) -> f64 {
        median(&self.values)
    }
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// A target and the figure that was measured.
pub(crate) struct TargetResult {
    pub(crate) target: String,
    pub(crate) found: String,
    pub(crate) is_met: bool,
}

#[derive(Default)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Row>,
    pub(crate) targets: Vec<TargetResult>,
}

impl Report {
    pub(crate) fn row(&mut self, row: Row) -> f64 {
        let (min, max) = spread(&row.values);
        println!(
            "{:<9} {:<44} {:>12.2} {:<12} (min {min:.2}, max {max:.2}, {} rounds)",
            row.case,
            row.what,
            row.median(),
            row.unit,
            row.values.len()
        );
        let median = row.median();
        self.rows.push(row);
        median
    }

    pub(crate) fn target(&mut self, target: impl Into<String>, found: impl Into<String>, is_met: bool) {
        self.targets.push(TargetResult { target: target.into(), found: found.into(), is_met });
    }

    /// Prints all targets; returns whether all were met.
    pub(crate) fn finish(&self) -> bool {
        println!("\ntargets:");
        for result in &self.targets {
            let word = if result.is_met { "met   " } else { "MISSED" };
            println!("  {word} {}: {}", result.target, result.found);
        }
        self.targets.iter().all(|result| result.is_met)
    }

    pub(crate) fn json(&self) -> String {
        let rows: Vec<_> = self
            .rows
            .iter()
            .map(|row| {
                let (min, max) = spread(&row.values);
                json!({
                    "case": row.case, "what": row.what, "unit": row.unit,
                    "value": row.median(), "min": min, "max": max, "rounds": row.values.len(),
                })
            })
            .collect();
        serde_json::to_string_pretty(&rows).unwrap()
    }
}

fn spread(values: &[f64]) -> (f64, f64) {
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (min, max)
}
