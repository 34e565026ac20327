//! Lists of mutants for the terminal, and figures for the scoreboard.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::fences;
use super::listed::Mutant;
use super::outcomes::{CAUGHT, MISSED, Outcomes, TIMEOUT, UNVIABLE};

#[derive(Default, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Figures {
    /// The files, or statements, that have mutants.
    files: u64,
    /// All mutants, with and without an outcome.
    listed: u64,
    caught: u64,
    timeouts: u64,
    unviable: u64,
    pub(super) missed: u64,
    /// Mutants of the checks of tokens and leases that compile and have an outcome; and the caught ones among them.
    fences: u64,
    fences_caught: u64,
    fences_listed: u64,
}

impl Figures {
    pub(super) fn of(mutants: &[Mutant], outcomes: &Outcomes) -> Self {
        let files: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.file.as_str()).collect();
        let (files, listed) = (files.len() as u64, mutants.len() as u64);
        let mut figures = Self { files, listed, ..Self::default() };
        for mutant in mutants {
            let is_fence = fences::guards(mutant);
            figures.fences_listed += u64::from(is_fence);
            let (count, noticed) = match outcomes.outcome(mutant) {
                Some(CAUGHT) => (&mut figures.caught, true),
                Some(TIMEOUT) => (&mut figures.timeouts, true),
                Some(MISSED) => (&mut figures.missed, false),
                Some(UNVIABLE) => {
                    figures.unviable += 1;
                    continue;
                }
                _ => continue,
            };
            *count += 1;
            figures.fences += u64::from(is_fence);
            figures.fences_caught += u64::from(is_fence && noticed);
        }
        figures
    }

    /// The sum of two targets.
    fn and(self, other: &Self) -> Self {
        Self {
            files: self.files + other.files,
            listed: self.listed + other.listed,
            caught: self.caught + other.caught,
            timeouts: self.timeouts + other.timeouts,
            unviable: self.unviable + other.unviable,
            missed: self.missed + other.missed,
            fences: self.fences + other.fences,
            fences_caught: self.fences_caught + other.fences_caught,
            fences_listed: self.fences_listed + other.fences_listed,
        }
    }

    fn tried(&self) -> u64 {
        self.caught + self.timeouts + self.unviable + self.missed
    }

    /// The percentage of caught mutants among the mutants that compile, with one decimal, rounded down.
    fn caught_percent(&self) -> f64 {
        let (noticed, judged) = (self.caught + self.timeouts, self.tried() - self.unviable);
        (noticed * 1_000).checked_div(judged).unwrap_or(0) as f64 / 10.0
    }

    fn json(&self) -> Value {
        json!({
            "files": self.files,
            "listed": self.listed,
            "mutants": self.tried(),
            "caught": self.caught,
            "timeouts": self.timeouts,
            "unviable": self.unviable,
            "missed": self.missed,
            "caught_percent": self.caught_percent(),
            "token_and_lease_listed": self.fences_listed,
            "token_and_lease_mutants": self.fences,
            "token_and_lease_caught": self.fences_caught,
        })
    }
}

fn total(figures: &[(&str, Figures)]) -> Figures {
    figures.iter().fold(Figures::default(), |sum, (_, figures)| sum.and(figures))
}

pub(super) fn table(figures: &[(&str, Figures)]) -> String {
    let mut out =
        "target         files  listed   tried  caught timeouts unviable  missed  caught %  tokens and leases\n"
            .to_string();
    let sum = total(figures);
    for (name, row) in figures.iter().copied().chain([("all", sum)]) {
        let _ = writeln!(
            out,
            "{name:<13} {:>6} {:>7} {:>7} {:>7} {:>8} {:>8} {:>7} {:>9.1}  {} of {}",
            row.files,
            row.listed,
            row.tried(),
            row.caught,
            row.timeouts,
            row.unviable,
            row.missed,
            row.caught_percent(),
            row.fences_caught,
            row.fences,
        );
    }
    out
}

/// Writes the sum, with the targets as maps inside.
pub(super) fn write(file: &Path, figures: &[(&str, Figures)]) -> Result<(), String> {
    let targets: Map<String, Value> =
        figures.iter().map(|(name, figures)| ((*name).to_string(), figures.json())).collect();
    let mut json = total(figures).json();
    json["targets"] = Value::Object(targets);
    std::fs::write(file, format!("{json:#}\n")).map_err(|error| format!("{}: {error}", file.display()))
}

pub(super) fn print_all(mutants: &[&Mutant], outcomes: &Outcomes) {
    for mutant in mutants {
        let mark = if fences::guards(mutant) { "!" } else { " " };
        println!("{:<9}{mark} {}", outcomes.outcome(mutant).unwrap_or("-"), mutant.name);
    }
}

pub(super) fn print_survivors(mutants: &[&Mutant], outcomes: &Outcomes) {
    for mutant in mutants.iter().filter(|mutant| outcomes.outcome(mutant) == Some(MISSED)) {
        println!("{}", mutant.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_count_mutants_that_compile_and_mutants_of_fences() {
        let token = "crates/provider-kit/src/token.rs";
        let cases = [
            ("a.rs", "f", Some(CAUGHT)),
            ("a.rs", "f", Some(TIMEOUT)),
            ("a.rs", "f", Some(UNVIABLE)),
            (token, "parse", Some(CAUGHT)),
            (token, "parse", Some(MISSED)),
            (token, "parse", Some(UNVIABLE)),
            (token, "parse", None),
        ];
        let mut outcomes = Outcomes::default();
        let mut mutants = Vec::new();
        for (at, (file, function, outcome)) in cases.into_iter().enumerate() {
            let mutant = Mutant::sample(file, function, at);
            if let Some(outcome) = outcome {
                outcomes.record(mutant.key.clone(), outcome);
            }
            mutants.push(mutant);
        }
        let figures = Figures::of(&mutants, &outcomes);
        let expected = json!({
            "files": 2, "listed": 7, "mutants": 6, "caught": 2, "timeouts": 1, "unviable": 2, "missed": 1, "caught_percent": 75.0,
            "token_and_lease_listed": 4, "token_and_lease_mutants": 2, "token_and_lease_caught": 1,
        });
        assert_eq!(figures.json(), expected);
        let twice = [("a", figures), ("b", figures)];
        assert_eq!(total(&twice).json()["mutants"], 12);
        assert_eq!(table(&twice).lines().count(), 4);
    }
}
