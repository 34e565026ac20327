//! Medians, spreads, targets.

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

/// A figure with what it should be.
pub(crate) struct Verdict {
    pub(crate) target: String,
    pub(crate) found: String,
    pub(crate) met: bool,
}

#[derive(Default)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Row>,
    pub(crate) verdicts: Vec<Verdict>,
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

    pub(crate) fn verdict(&mut self, target: impl Into<String>, found: impl Into<String>, met: bool) {
        self.verdicts.push(Verdict { target: target.into(), found: found.into(), met });
    }

    /// Prints what was reached; says whether all was.
    pub(crate) fn finish(&self) -> bool {
        println!("\ntargets:");
        for verdict in &self.verdicts {
            let word = if verdict.met { "met   " } else { "MISSED" };
            println!("  {word} {}: {}", verdict.target, verdict.found);
        }
        self.verdicts.iter().all(|verdict| verdict.met)
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
