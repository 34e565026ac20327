//! The counts of a run, read from the output of libFuzzer.

use std::fmt::Write as _;

/// The counts of one target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) executions: u64,
    pub(super) seconds: u64,
    pub(super) crashes: u64,
    /// Inputs in the corpus after the run.
    pub(super) corpus: u64,
}

impl Tally {
    /// Reads a line of libFuzzer: `Done 123 runs in 60 second(s)`, `#123 NEW ..`, `==1== ERROR: ..`.
    pub(super) fn read(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("Done ") {
            let numbers: Vec<u64> = rest.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            if let [runs, seconds, ..] = numbers[..] {
                (self.executions, self.seconds) = (runs, seconds);
            }
        } else if let Some(rest) = line.strip_prefix('#') {
            let count = rest.split_whitespace().next().and_then(|word| word.parse().ok());
            self.executions = self.executions.max(count.unwrap_or(0));
        } else if line.starts_with("==") && line.contains("ERROR: ") {
            self.crashes += 1;
        }
    }
}

pub(super) fn table(tallies: &[(&str, Tally)]) -> String {
    let mut out =
        format!("\n{:<20} {:>12} {:>8} {:>8} {:>8}\n", "target", "executions", "per s", "corpus", "crashes");
    for (target, tally) in tallies {
        let Tally { executions, seconds, crashes, corpus } = tally;
        let rate = executions / seconds.max(&1);
        let _ = writeln!(out, "{target:<20} {executions:>12} {rate:>8} {corpus:>8} {crashes:>8}");
    }
    out
}

/// One JSON object without nesting: the counts of each target, and the sums.
pub(super) fn json(tallies: &[(&str, Tally)]) -> String {
    let mut object = serde_json::Map::new();
    let mut sum = Tally::default();
    for (target, tally) in tallies {
        object.insert((*target).to_string(), tally.executions.into());
        object.insert(format!("{target}_seconds"), tally.seconds.into());
        object.insert(format!("{target}_corpus"), tally.corpus.into());
        sum.executions += tally.executions;
        sum.crashes += tally.crashes;
    }
    object.insert("executions".to_string(), sum.executions.into());
    object.insert("crashes".to_string(), sum.crashes.into());
    serde_json::Value::Object(object).to_string() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_the_output_of_libfuzzer() {
        let mut tally = Tally::default();
        for line in [
            "INFO: seed corpus: files: 3",
            "#2\tINITED cov: 10 ft: 10",
            "#4096\tpulse  cov: 60",
            "Done 5000 runs in 61 second(s)",
        ] {
            tally.read(line);
        }
        assert_eq!(tally, Tally { executions: 5_000, seconds: 61, crashes: 0, corpus: 0 });
        tally.read("==12== ERROR: libFuzzer: deadly signal");
        assert_eq!(tally.crashes, 1);
    }

    #[test]
    fn the_json_has_counts_by_target_and_sums() {
        let tally = Tally { executions: 7, seconds: 2, crashes: 1, corpus: 3 };
        let json: serde_json::Value = serde_json::from_str(&json(&[("a", tally), ("b", tally)])).unwrap();
        assert_eq!((&json["a"], &json["b_corpus"]), (&7.into(), &3.into()));
        assert_eq!((&json["executions"], &json["crashes"]), (&14.into(), &2.into()));
        assert!(table(&[("a", tally)]).contains("a "));
    }
}
