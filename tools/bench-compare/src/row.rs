//! Figures as rows: medians with their spread, and their JSON.

use serde_json::{Value, json};

/// One figure of one entry of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) scenario: String,
    pub(super) store: String,
    pub(super) system: String,
    pub(super) metric: String,
    pub(super) unit: String,
    /// The median of the rounds.
    pub(super) value: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) rounds: usize,
    pub(super) durability: String,
    /// Every instance of every round completed with the right output.
    pub(super) ok: bool,
    /// How the program was called.
    pub(super) setting: String,
}

impl Row {
    pub(super) fn json(&self) -> Value {
        json!({
            "scenario": self.scenario,
            "store": self.store,
            "system": self.system,
            "metric": self.metric,
            "unit": self.unit,
            "value": self.value,
            "min": self.min,
            "max": self.max,
            "rounds": self.rounds,
            "durability": self.durability,
            "ok": self.ok,
            "setting": self.setting,
        })
    }

    fn parse(json: &Value) -> Option<Self> {
        let text = |key: &str| Some(json[key].as_str()?.to_string());
        let number = |key: &str| json[key].as_f64();
        Some(Self {
            scenario: text("scenario")?,
            store: text("store")?,
            system: text("system")?,
            metric: text("metric")?,
            unit: text("unit")?,
            value: number("value")?,
            min: number("min")?,
            max: number("max")?,
            rounds: usize::try_from(json["rounds"].as_u64()?).ok()?,
            durability: text("durability")?,
            ok: json["ok"].as_bool()?,
            setting: text("setting")?,
        })
    }

    /// Whether the row is of Outlast, at its best setting or at its defaults.
    pub(super) fn is_ours(&self) -> bool {
        self.system.starts_with("outlast")
    }

    /// The system with its durability or store, for readers.
    pub(super) fn label(&self) -> String {
        match self.store.as_str() {
            "sqlite" => format!("{} {}", self.system, self.durability),
            store => format!("{} {store}", self.system),
        }
    }
}

/// One line per row: a diff of two runs reads well.
pub(super) fn write(rows: &[Row]) -> String {
    let lines: Vec<String> = rows.iter().map(|row| format!("  {}", row.json())).collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

pub(super) fn read(text: &str) -> Result<Vec<Row>, String> {
    let json: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    let rows = json.as_array().ok_or("not an array of rows")?;
    rows.iter().map(|row| Row::parse(row).ok_or_else(|| format!("not a row: {row}"))).collect()
}

/// The answer of one process.
pub(super) struct Sample {
    pub(super) setting: String,
    pub(super) answer: Value,
}

impl Sample {
    pub(super) fn figure(&self, metric: &str) -> Option<f64> {
        self.answer["figures"][metric]["value"].as_f64()
    }

    pub(super) fn ok(&self) -> bool {
        self.answer["ok"].as_bool() == Some(true)
    }
}

/// One row per figure that any of the samples has.
pub(super) fn rows(scenario: &str, store: &str, system: &str, samples: &[&Sample]) -> Vec<Row> {
    let Some(first) = samples.first() else { return Vec::new() };
    let mut metrics: Vec<&String> = samples
        .iter()
        .filter_map(|sample| sample.answer["figures"].as_object())
        .flatten()
        .map(|(k, _)| k)
        .collect();
    metrics.sort();
    metrics.dedup();
    let row = |metric: &String| {
        let having = |sample: &&&Sample| sample.figure(metric).is_some();
        let of: Vec<&&Sample> = samples.iter().filter(having).collect();
        let values: Vec<f64> = of.iter().filter_map(|sample| sample.figure(metric)).collect();
        Some(Row {
            scenario: scenario.to_string(),
            store: store.to_string(),
            system: system.to_string(),
            unit: of.first()?.answer["figures"][metric]["unit"].as_str()?.to_string(),
            metric: metric.clone(),
            value: median(&values)?,
            min: values.iter().copied().reduce(f64::min)?,
            max: values.iter().copied().reduce(f64::max)?,
            rounds: values.len(),
            durability: first.answer["durability"].as_str()?.to_string(),
            ok: samples.iter().all(|sample| sample.ok()),
            setting: of.first()?.setting.clone(),
        })
    };
    metrics.into_iter().filter_map(row).collect()
}

pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    Some(if sorted.len() % 2 == 1 { upper } else { (sorted[sorted.len() / 2 - 1] + upper) / 2.0 })
}

/// Three digits that count, or all before the point.
pub(super) fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.9995 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A row whose worst round is half, and whose best round one and a half of its value.
    pub(in super::super) fn row(scenario: &str, label: &str, metric: &str, value: f64) -> Row {
        let (system, durability) = label.split_once(' ').unwrap();
        Row {
            scenario: scenario.to_string(),
            store: "sqlite".to_string(),
            system: system.to_string(),
            metric: metric.to_string(),
            unit: "ms".to_string(),
            value,
            min: value * 0.5,
            max: value * 1.5,
            rounds: 3,
            durability: durability.to_string(),
            ok: true,
            setting: "--dispatchers 2".to_string(),
        }
    }

    fn sample(ok: bool, throughput: f64) -> Sample {
        let figures = json!({"throughput": {"value": throughput, "unit": "x/s"}});
        let answer = json!({"ok": ok, "durability": "FULL", "figures": figures});
        Sample { setting: "--a".to_string(), answer }
    }

    #[test]
    fn a_row_is_the_median_of_its_samples() {
        let samples = [sample(true, 4.0), sample(true, 1.0), sample(true, 2.0)];
        let samples: Vec<&Sample> = samples.iter().collect();
        let rows = rows("hello", "sqlite", "outlast", &samples);
        assert_eq!(rows.len(), 1);
        let row = &rows[0];
        assert_eq!((row.value, row.min, row.max, row.rounds, row.ok), (2.0, 1.0, 4.0, 3, true));
        assert_eq!((row.unit.as_str(), row.durability.as_str()), ("x/s", "FULL"));
    }

    #[test]
    fn a_round_without_a_figure_still_counts_as_not_done() {
        let empty = json!({"ok": false, "durability": "FULL", "figures": {}});
        let samples = [sample(true, 4.0), Sample { setting: "--a".to_string(), answer: empty }];
        let samples: Vec<&Sample> = samples.iter().collect();
        let rows = rows("hello", "sqlite", "outlast", &samples);
        assert_eq!((rows[0].ok, rows[0].value, rows[0].rounds), (false, 4.0, 1));
    }

    #[test]
    fn work_that_was_not_done_shows_in_the_row() {
        let samples = [sample(true, 4.0), sample(false, 1.0)];
        let samples: Vec<&Sample> = samples.iter().collect();
        let rows = rows("hello", "sqlite", "outlast", &samples);
        assert_eq!((rows[0].ok, rows[0].value), (false, 2.5));
        assert!(super::rows("hello", "sqlite", "outlast", &[]).is_empty());
    }

    #[test]
    fn the_json_of_a_row_has_the_promised_keys_and_is_read_back() {
        let row = row("hello", "outlast FULL", "throughput", 5000.0);
        let json = row.json();
        let promised = [
            "scenario",
            "store",
            "system",
            "metric",
            "unit",
            "value",
            "min",
            "max",
            "rounds",
            "durability",
            "ok",
        ];
        for key in promised {
            assert!(!json[key].is_null(), "{key}");
        }
        assert_eq!(read(&write(&[row.clone(), row.clone()])).unwrap(), [row.clone(), row]);
        assert!(read("[{\"scenario\": \"hello\"}]").unwrap_err().contains("not a row"));
        assert!(read("{}").is_err() && read("nothing").is_err());
    }

    #[test]
    fn figures_are_shown_with_three_digits() {
        for (value, text) in
            [(12_345.6, "12346"), (99.96, "100"), (9.999, "10.0"), (1.234, "1.23"), (0.0456, "0.046")]
        {
            assert_eq!(digits(value), text);
        }
    }
}
