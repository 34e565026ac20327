//! The outcomes of the mutants of a target. cargo-mutants writes a file after each mutant. The file is read when
//! cargo-mutants has ended, or when the next run starts after a run that was stopped.
//!
//! An outcome is kept under the key of the mutant, which changes with the mutated function. A caught mutant also has the test that
//! failed, with the fingerprint of its source: it is tried again after that test has changed or is gone. An outcome without such a
//! test (no test failed, the tests did not end, no line named the test, or a macro made it) has the fingerprint of all tests of its
//! target. A mutant that does not compile needs no test.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::listed::Mutant;
use super::sources::Sources;

/// A test failed.
pub(super) const CAUGHT: &str = "caught";
/// The tests did not end in time. This counts as caught.
pub(super) const TIMEOUT: &str = "timeout";
/// The mutant does not compile, so the tests could not run.
pub(super) const UNVIABLE: &str = "unviable";
/// All tests passed.
pub(super) const MISSED: &str = "missed";

/// Separates an outcome, the test that failed, and the fingerprint of the test.
const BETWEEN: char = '\t';

#[derive(Default)]
pub(super) struct Outcomes {
    home: PathBuf,
    /// The fingerprint of all tests of the target.
    tests: u64,
    by_key: BTreeMap<String, String>,
}

impl Outcomes {
    /// Reads the kept outcomes, and the outcomes that a stopped run left in the file of cargo-mutants.
    /// Forgets the outcomes whose test, or tests, are not the same. `tests` is the fingerprint of all tests of the target.
    pub(super) fn open(home: &Path, sources: &Sources, tests: u64) -> Result<Self, String> {
        let by_key = read(&home.join("outcomes.json"))?;
        let mut outcomes = Self { home: home.to_path_buf(), tests, by_key };
        outcomes.absorb()?;
        outcomes.by_key.retain(|_, outcome| is_valid(outcome, sources, tests));
        Ok(outcomes)
    }

    pub(super) fn outcome(&self, mutant: &Mutant) -> Option<&str> {
        self.by_key.get(&mutant.key)?.split(BETWEEN).next()
    }

    /// Keeps an outcome for which no test is known.
    pub(super) fn record(&mut self, key: String, outcome: &str) {
        self.keep(key, outcome, "", self.tests);
    }

    /// Keeps an outcome with the test that failed.
    pub(super) fn record_by(&mut self, key: String, outcome: &str, test: &str, sources: &Sources) {
        self.keep(key, outcome, test, sources.of(test).unwrap_or(self.tests));
    }

    fn keep(&mut self, key: String, outcome: &str, test: &str, fingerprint: u64) {
        self.by_key.insert(key, format!("{outcome}{BETWEEN}{test}{BETWEEN}{fingerprint:016x}"));
    }

    /// Writes the keys of the mutants that cargo-mutants runs next, with the fingerprint of the tests, because the sources may have
    /// changed when the outcomes are read. Removes the older file of cargo-mutants, whose outcomes are already kept.
    pub(super) fn begin(&self, mutants: &[&Mutant]) -> Result<(), String> {
        let keys: BTreeMap<String, String> =
            mutants.iter().map(|mutant| (mutant.name.clone(), self.running(&mutant.key))).collect();
        let _ = fs::remove_dir_all(self.home.join("mutants.out"));
        write(&self.home.join("running.json"), &keys)
    }

    fn running(&self, key: &str) -> String {
        format!("{key}{BETWEEN}{:016x}", self.tests)
    }

    /// Reads the outcomes that cargo-mutants wrote.
    pub(super) fn absorb(&mut self) -> Result<(), String> {
        let keys = read(&self.home.join("running.json"))?;
        let Ok(text) = fs::read_to_string(self.home.join("mutants.out/outcomes.json")) else { return Ok(()) };
        let json: Value = serde_json::from_str(&text)
            .map_err(|error| format!("{}: outcomes.json: {error}", self.home.display()))?;
        for (name, outcome) in outcomes(&json) {
            let running = keys.get(&name).and_then(|running| running.split_once(BETWEEN));
            let Some((key, tests)) = running else { continue };
            if let Ok(tests) = u64::from_str_radix(tests, 16) {
                self.keep(key.to_string(), outcome, "", tests);
            }
        }
        self.save()
    }

    pub(super) fn save(&self) -> Result<(), String> {
        write(&self.home.join("outcomes.json"), &self.by_key)
    }
}

/// Whether the test that decided the outcome has not changed.
fn is_valid(outcome: &str, sources: &Sources, tests: u64) -> bool {
    let mut parts = outcome.split(BETWEEN);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(UNVIABLE), ..) => true,
        (_, Some(test), Some(fingerprint)) => {
            format!("{:016x}", sources.of(test).unwrap_or(tests)) == fingerprint
        }
        _ => false,
    }
}

/// The names and outcomes of the mutants. The run without a mutant is left out.
fn outcomes(json: &Value) -> impl Iterator<Item = (String, &'static str)> {
    json["outcomes"].as_array().into_iter().flatten().filter_map(|outcome| {
        let name = outcome["scenario"]["Mutant"]["name"].as_str()?;
        let outcome = match outcome["summary"].as_str()? {
            "CaughtMutant" => CAUGHT,
            "MissedMutant" => MISSED,
            "Timeout" => TIMEOUT,
            "Unviable" => UNVIABLE,
            _ => return None,
        };
        Some((name.to_string(), outcome))
    })
}

/// Reads a map of a file; empty if the file does not exist.
fn read(file: &Path) -> Result<BTreeMap<String, String>, String> {
    match fs::read_to_string(file) {
        Ok(text) => serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display())),
        Err(_) => Ok(BTreeMap::new()),
    }
}

/// Replaces a file atomically, because a run may be stopped at any moment.
fn write(file: &Path, map: &BTreeMap<String, String>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    let text = serde_json::to_string_pretty(map).map_err(|error| format!("{}: {error}", file.display()))?;
    file.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
    let new = file.with_extension("new");
    fs::write(&new, text).and_then(|()| fs::rename(&new, file)).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_outcome_is_forgotten_when_the_test_that_failed_changes() {
        let home = std::env::temp_dir().join(format!("outlast-mutant-tests-{}", std::process::id()));
        let _ = fs::remove_dir_all(&home);
        let mutant = Mutant::sample("a.rs", "f", 1);
        let sources = |body: &str| {
            let mut sources = Sources::default();
            sources.add(&format!("fn one() {{\n    {body}\n}}\n"));
            sources
        };
        let mut outcomes = Outcomes::open(&home, &sources("1"), 5).unwrap();
        outcomes.record_by(mutant.key.clone(), CAUGHT, "tests::one", &sources("1"));
        outcomes.save().unwrap();
        let found = |sources: &Sources| {
            Outcomes::open(&home, sources, 5).unwrap().outcome(&mutant).map(str::to_string)
        };
        assert_eq!(found(&sources("1")).as_deref(), Some(CAUGHT));
        assert_eq!(found(&sources("2")), None);
        assert_eq!(found(&Sources::default()), None, "the test is gone");
        fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn outcome_without_a_known_test_is_forgotten_when_a_test_of_the_target_changes() {
        let home = std::env::temp_dir().join(format!("outlast-mutant-targets-{}", std::process::id()));
        let _ = fs::remove_dir_all(&home);
        let mutants: Vec<Mutant> = (1..7).map(|at| Mutant::sample("a.rs", "f", at)).collect();
        let sources = Sources::default();
        let mut outcomes = Outcomes::open(&home, &sources, 5).unwrap();
        for (mutant, outcome) in mutants.iter().zip([CAUGHT, MISSED, TIMEOUT, UNVIABLE]) {
            outcomes.record(mutant.key.clone(), outcome);
        }
        outcomes.record_by(mutants[4].key.clone(), CAUGHT, "tests::made_by_a_macro", &sources);
        // As an earlier version of the tool wrote it.
        outcomes.by_key.insert(mutants[5].key.clone(), CAUGHT.to_string());
        outcomes.save().unwrap();
        let known = |tests: u64| -> Vec<bool> {
            let outcomes = Outcomes::open(&home, &sources, tests).unwrap();
            mutants.iter().map(|mutant| outcomes.outcome(mutant).is_some()).collect()
        };
        assert_eq!(known(5), [true, true, true, true, true, false]);
        assert_eq!(known(6), [false, false, false, true, false, false]);
        fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn outcomes_of_a_stopped_run_are_kept() {
        let home = std::env::temp_dir().join(format!("outlast-mutant-outcomes-{}", std::process::id()));
        let _ = fs::remove_dir_all(&home);
        let mutants: Vec<Mutant> = (1..6).map(|at| Mutant::sample("a.rs", "f", at)).collect();
        let outcomes = Outcomes::open(&home, &Sources::default(), 5).unwrap();
        outcomes.begin(&mutants.iter().collect::<Vec<_>>()).unwrap();
        let told = |at: usize, summary: &str| json!({"scenario": {"Mutant": {"name": mutants[at].name}}, "summary": summary});
        let written = json!({"outcomes": [
            {"scenario": "Baseline", "summary": "Success"},
            told(0, "CaughtMutant"), told(1, "MissedMutant"), told(2, "Timeout"), told(3, "Unviable"),
        ]});
        fs::create_dir_all(home.join("mutants.out")).unwrap();
        fs::write(home.join("mutants.out/outcomes.json"), written.to_string()).unwrap();

        let seen = |outcomes: &Outcomes| -> Vec<Option<String>> {
            mutants.iter().map(|mutant| outcomes.outcome(mutant).map(str::to_string)).collect()
        };
        let expected = [Some(CAUGHT), Some(MISSED), Some(TIMEOUT), Some(UNVIABLE), None];
        let outcomes = Outcomes::open(&home, &Sources::default(), 5).unwrap();
        assert_eq!(seen(&outcomes), expected.map(|outcome| outcome.map(str::to_string)));
        // The next run starts with an empty file and keeps the known outcomes.
        outcomes.begin(&[&mutants[4]]).unwrap();
        assert_eq!(seen(&Outcomes::open(&home, &Sources::default(), 5).unwrap()), seen(&outcomes));
        // The tests have changed since the run began.
        let later = seen(&Outcomes::open(&home, &Sources::default(), 6).unwrap());
        assert_eq!(later, [None, None, None, Some(UNVIABLE.to_string()), None]);
        // An older file of cargo-mutants does not replace a newer outcome.
        let mut outcomes = outcomes;
        outcomes.record(mutants[1].key.clone(), CAUGHT);
        outcomes.save().unwrap();
        assert_eq!(Outcomes::open(&home, &Sources::default(), 5).unwrap().outcome(&mutants[1]), Some(CAUGHT));
        fs::remove_dir_all(&home).unwrap();
    }
}
