//! The cases, and what is read from their results.

/// A row or more of the table.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// The case of `bench/peers/cases` with its options: for a full run, and for a quick one.
    pub(super) full: &'static str,
    pub(super) quick: &'static str,
    /// Options for the peer alone.
    pub(super) peer: &'static str,
    /// The options of `outlast-bench floor`.
    pub(super) floor: &'static str,
    /// The first one decides which number of dispatchers is the best.
    pub(super) figures: &'static [Figure],
}

/// A number in the result.
pub(super) struct Figure {
    pub(super) key: &'static str,
    pub(super) unit: &'static str,
    pub(super) more_is_better: bool,
}

impl Figure {
    const fn rate(unit: &'static str) -> Self {
        Self { key: "per_second", unit, more_is_better: true }
    }

    const fn cost(key: &'static str, unit: &'static str) -> Self {
        Self { key, unit, more_is_better: false }
    }

    /// How many times better the one is than the other.
    pub(super) fn ratio(&self, one: f64, other: f64) -> f64 {
        if self.more_is_better { one / other } else { other / one }
    }

    pub(super) fn show(&self, value: Option<f64>) -> String {
        match value {
            Some(value) => format!("{} {}", digits(value), self.unit),
            None => "no figure".to_string(),
        }
    }
}

/// Three digits that count, or all before the point.
pub(super) fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

const STEP: Figure = Figure::cost("step_ms", "ms/step");

pub(super) const CASES: &[Case] = &[
    Case {
        name: "hello-backlog",
        full: "hello-backlog --count 1000",
        quick: "hello-backlog --count 300",
        peer: "",
        floor: "hello --count 8000 --per-transaction 64",
        figures: &[Figure::rate("orchestrations/s")],
    },
    Case {
        name: "hello-closed",
        full: "hello-closed --in-flight 16 --count 4000 --seconds 10",
        quick: "hello-closed --in-flight 16 --count 1000 --seconds 4",
        peer: "",
        floor: "hello --count 4000 --per-transaction 16",
        figures: &[Figure::rate("orchestrations/s"), Figure::cost("p50_ms", "ms, p50")],
    },
    Case {
        name: "hello-idle",
        full: "hello-idle --count 50",
        quick: "hello-idle --count 15",
        peer: "",
        floor: "hello --count 500 --per-transaction 1",
        figures: &[Figure::cost("p50_ms", "ms, p50"), Figure::cost("p99_ms", "ms, p99")],
    },
    Case {
        name: "chain-one",
        full: "chain-one --steps 1000",
        quick: "chain-one --steps 300",
        peer: "--poll-ms 1",
        floor: "chain --count 1 --steps 500",
        figures: &[STEP, Figure::cost("growth", "last tenth : first")],
    },
    Case {
        name: "chain-default",
        full: "chain-one --steps 50",
        quick: "chain-one --steps 20",
        peer: "",
        floor: "chain --count 1 --steps 500",
        figures: &[STEP],
    },
    Case {
        name: "chain-many",
        full: "chain-many --count 200 --steps 10",
        quick: "chain-many --count 50 --steps 10",
        peer: "",
        floor: "chain --count 640 --steps 10 --per-transaction 64",
        figures: &[Figure::rate("steps/s")],
    },
];
