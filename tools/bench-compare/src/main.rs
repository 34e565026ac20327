//! `cargo xtask bench compare`: Outlast, its peers and hand-written floors, interleaved in one run.
//!
//! Every figure comes from a separate process with an empty store, which checks its own results. The targets are ratios of
//! medians.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool prints to its terminal")]

mod contestant;
mod html;
mod paste;
mod plan;
mod rig;
mod row;
mod scenario;
mod svg;
mod table;
mod target;

use std::path::Path;
use std::process::ExitCode;

use self::contestant::{Contestants, Program, Scratch};
use self::plan::Plan;
use self::rig::Rig;
use self::row::{Row, Sample, digits};
use self::scenario::{Backend, Entry, Scenario, Tries};
use outlast_toolkit::bench_server::Server;
use outlast_toolkit::files::{read, write};
use outlast_toolkit::{Stopwatch, process};

/// The page of the figures, and that of the figures on Cosmos DB.
const PAGE: &str = "docs/performance.md";
const COSMOS_PAGE: &str = "docs/cosmos.md";

/// Notes below the table.
const NOTES: &str = "\
Medians (lowest..highest round) at the best of the settings that the first round tried; `!`: not all of the work
was done. duroxide 0.1.32 and durare 0.5.0 run SQLite at NORMAL: what they have acknowledged can be lost when the
power fails. The floors run at FULL. PostgreSQL runs with fsync and synchronous_commit on.";

fn main() -> ExitCode {
    let plan = Plan::parse(std::env::args().skip(1)).unwrap_or_else(|error| error.exit());
    run(plan).unwrap_or_else(|message| {
        eprintln!("bench compare: {message}");
        ExitCode::from(2)
    })
}

/// Builds the programs, runs all rounds, and publishes the figures.
fn run(mut plan: Plan) -> Result<ExitCode, String> {
    if plan.paste {
        return paste(&plan);
    }
    let server = server_for(&mut plan)?;
    let programs =
        plan.scenarios.iter().flat_map(|scenario| scenario.entries.iter().map(|entry| entry.program));
    let programs = programs.chain(plan.needs(Backend::Cosmos).then_some(Program::Rig));
    let contestants = Contestants::build(programs)?;
    let mut run = Run { contestants, server, courses: courses(&plan), errors: 0 };
    let stopwatch = Stopwatch::start();
    for round in 1..=plan.rounds {
        println!("round {round} of {}, after {} s", plan.rounds, stopwatch.elapsed().as_secs());
        run.round(round, &plan)?;
    }
    let rows = run.rows(&plan);
    publish(&plan, &rows)?;
    println!("{} s", stopwatch.elapsed().as_secs());
    Ok(verdict(&rows, run.errors))
}

/// Starts a PostgreSQL server if the plan needs one. Without a server the other scenarios run, unless --store names PostgreSQL.
fn server_for(plan: &mut Plan) -> Result<Option<Server>, String> {
    if !plan.needs(Backend::Postgres) {
        return Ok(None);
    }
    match Server::start() {
        Ok(server) => Ok(Some(server)),
        Err(reason) if plan.is_store_named => Err(format!("PostgreSQL could not be started: {reason}")),
        Err(reason) => {
            println!("the scenarios with PostgreSQL are left out: {reason}");
            plan.leave_out(|scenario| scenario.backend == Backend::Postgres);
            Ok(None)
        }
    }
}

/// Writes the figures of the files into the pages.
fn paste(plan: &Plan) -> Result<ExitCode, String> {
    let files = plan.json.to_string_lossy();
    let mut rows = Vec::new();
    for file in files.split(',') {
        rows.extend(row::read(&read(Path::new(file))?).map_err(|error| format!("{file}: {error}"))?);
    }
    let is_billed = |row: &Row| Backend::of(&row.store) == Backend::Cosmos;
    let (billed, timed): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(is_billed);
    for (name, rows) in [(PAGE, timed), (COSMOS_PAGE, billed)] {
        if rows.is_empty() {
            continue;
        }
        let path = process::root().join(name);
        let page = paste::into_page(&read(&path)?, &rows).map_err(|error| format!("{name}: {error}"))?;
        write(&path, &page)?;
        println!("{name} has the figures of {files}");
    }
    Ok(ExitCode::SUCCESS)
}

/// One entry of one scenario, with its samples.
struct Course {
    scenario: &'static Scenario,
    entry: &'static Entry,
    samples: Vec<Sample>,
}

/// The entries of all chosen scenarios.
fn courses(plan: &Plan) -> Vec<Course> {
    let of = |scenario: &'static Scenario| {
        scenario.entries.iter().map(move |entry| Course { scenario, entry, samples: Vec::new() })
    };
    plan.scenarios.iter().flat_map(|scenario| of(scenario)).collect()
}

struct Run {
    contestants: Contestants,
    server: Option<Server>,
    courses: Vec<Course>,
    errors: usize,
}

impl Run {
    /// Measures all entries in turn, so that a slow minute of the machine affects all entries. A run that fails is reported and
    /// leaves an empty cell in the table.
    fn round(&mut self, round: u32, plan: &Plan) -> Result<(), String> {
        for course in &mut self.courses {
            if !course.entry.takes_part(round, plan.quick) {
                continue;
            }
            for setting in course.settings(plan.quick) {
                let line = course.scenario.line(course.entry, setting, plan.quick);
                let label = format!("{}, {} ({line})", course.scenario.title(), course.entry.system);
                match measure(&self.contestants, self.server.as_ref(), course, &line) {
                    Ok(answer) => {
                        let sample = Sample { setting: line, answer };
                        println!("  {label}: {}", course.scenario.describe(&sample));
                        course.samples.push(sample);
                    }
                    Err(error) => {
                        println!("  {label}: FAILED: {error}");
                        self.errors += 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// The rows of all courses.
    fn rows(&self, plan: &Plan) -> Vec<Row> {
        let of = |course: &Course| {
            let (scenario, entry) = (course.scenario, course.entry);
            let mut rows = row::rows(scenario.name, entry.store, entry.system, &course.counted(plan.quick));
            // For a curve, only the figures of its points are shown.
            if let Tries::Every(_) = entry.tries {
                rows.retain(|row| row.metric.starts_with(scenario.judged_by.name));
            }
            rows
        };
        let mut rows: Vec<Row> = self.courses.iter().flat_map(of).collect();
        rows.extend(target::collapse(&rows));
        rows
    }
}

/// Runs one process with an empty store.
fn measure(
    contestants: &Contestants,
    server: Option<&Server>,
    course: &Course,
    line: &str,
) -> Result<serde_json::Value, String> {
    let (program, scratch) = (course.entry.program, Scratch::new()?);
    match (course.scenario.backend, server) {
        (Backend::Postgres, Some(server)) => {
            let database = server.database()?;
            let mut answer = contestants.measure(program, line, scratch.path(), &database.variables())?;
            database.count(&mut answer)?;
            Ok(answer)
        }
        (Backend::Cosmos, _) => {
            let rig = Rig::start(contestants.path(Program::Rig)?)?;
            contestants.measure(program, line, scratch.path(), rig.variables())
        }
        _ => contestants.measure(program, line, scratch.path(), &[]),
    }
}

impl Course {
    /// The settings of the next round: all settings in the first round, then the best setting.
    fn settings(&self, quick: bool) -> Vec<&'static str> {
        match self.best(quick) {
            Some(best) => vec![best],
            None => self.entry.settings(quick).to_vec(),
        }
    }

    /// The setting with the best figure in the first round; `None` if every round measures all settings.
    fn best(&self, quick: bool) -> Option<&'static str> {
        let Tries::Best(..) = self.entry.tries else { return None };
        let metric = self.scenario.judged_by;
        let value = |setting: &str| {
            let line = self.scenario.line(self.entry, setting, quick);
            // The first round tried all settings; later rounds have the best setting only.
            let sample = self.samples.iter().find(|sample| sample.setting == line)?;
            Some((sample.figure(metric.name)?, sample.ok()))
        };
        let tried = || {
            let settings = self.entry.settings(quick).iter();
            settings.filter_map(|setting| Some((*setting, value(setting)?)))
        };
        // A setting that loses work is the best setting only if all settings lose work.
        let sound = tried().any(|(_, (_, ok))| ok);
        let tried =
            tried().filter(|(_, (_, ok))| *ok || !sound).map(|(setting, (value, _))| (setting, value));
        let better = |a: f64, b: f64| if metric.more_is_better { a > b } else { a < b };
        tried
            .reduce(|best, next| if better(next.1, best.1) { next } else { best })
            .map(|(setting, _)| setting)
    }

    /// The samples that make the rows: those at the best setting.
    fn counted(&self, quick: bool) -> Vec<&Sample> {
        let best = self.best(quick).map(|setting| self.scenario.line(self.entry, setting, quick));
        self.samples
            .iter()
            .filter(|sample| best.as_ref().is_none_or(|best| *best == sample.setting))
            .collect()
    }
}

impl Scenario {
    /// One sample in a few words.
    fn describe(&self, sample: &Sample) -> String {
        let figures = sample.answer["figures"].as_object();
        // A floor has a throughput, also if the scenario is judged by another metric.
        let figure_of =
            |prefix: &str| figures.into_iter().flatten().find(|(name, _)| name.starts_with(prefix));
        let first = figure_of(self.judged_by.name).or_else(|| figure_of("throughput"));
        let shown = first.map_or("no figure".to_string(), |(_, figure)| {
            let value = figure["value"].as_f64().map_or(String::new(), digits);
            format!("{value} {}", figure["unit"].as_str().unwrap_or_default())
        });
        let count = |key: &str| sample.answer[key].as_u64().unwrap_or(0);
        if sample.ok() {
            return shown;
        }
        let (failed, wrong) = (count("failed"), count("wrong"));
        let open = count("expected").saturating_sub(count("completed") + failed + wrong);
        format!("{shown}; of {}: {failed} failed, {wrong} wrong, {open} not done in time", count("expected"))
    }
}

/// Prints the tables, and writes the rows and the report.
fn publish(plan: &Plan, rows: &[Row]) -> Result<(), String> {
    for (title, table) in table::all_measured(rows) {
        println!("\n{title}\n{}", table.text());
    }
    println!("{NOTES}\n");
    let counted = table::counted(rows);
    if !counted.lines.is_empty() {
        println!("{}", counted.text());
    }
    println!("{}", table::judged(rows).text());
    let report = plan.json.with_extension("html");
    write(&plan.json, &row::write(rows))?;
    write(&report, &html::report(rows))?;
    println!("rows: {}\nreport: {}", plan.json.display(), report.display());
    Ok(())
}

/// The run passes if all targets are met, on a floor that is sound, with every piece of our work done.
fn verdict(rows: &[Row], errors: usize) -> ExitCode {
    let missed: Vec<_> = table::of_these(rows).into_iter().filter(|target| !target.is_met(rows)).collect();
    if missed.iter().any(|target| target.is_for_a_floor()) {
        println!("floor broken: a floor is below its pin, so these figures mean nothing");
    }
    let undone = rows.iter().filter(|row| row.is_ours() && !row.ok).count();
    println!(
        "{} targets missed, {errors} runs failed, {undone} figures of ours without all of their work",
        missed.len()
    );
    if missed.is_empty() && errors == 0 && undone == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn course(scenario: &str, system: &str) -> Course {
        let plan = Plan::parse(["--only".to_string(), scenario.to_string()]).unwrap();
        courses(&plan).into_iter().find(|course| course.entry.system == system).unwrap()
    }

    fn answered(course: &mut Course, setting: &str, metric: &str, value: f64) {
        let setting = course.scenario.line(course.entry, setting, true);
        let answer = json!({"ok": true, "figures": {metric: {"value": value, "unit": "u"}}});
        course.samples.push(Sample { setting, answer });
    }

    #[test]
    fn the_first_round_finds_the_best_setting() {
        let mut course = course("fan-out-5", "outlast");
        assert_eq!(course.settings(true), ["--dispatchers 32", "--dispatchers 64"]);
        answered(&mut course, "--dispatchers 32", "throughput", 10.0);
        answered(&mut course, "--dispatchers 64", "throughput", 12.0);
        assert_eq!(course.settings(true), ["--dispatchers 64"]);
        // A slow second round does not change the choice.
        answered(&mut course, "--dispatchers 64", "throughput", 5.0);
        assert_eq!(course.settings(true), ["--dispatchers 64"]);
        assert_eq!(course.counted(true).len(), 2);
    }

    #[test]
    fn a_setting_that_loses_work_is_not_the_best() {
        let mut course = course("fan-out-5", "duroxide");
        answered(&mut course, "--dispatchers 1", "throughput", 10.0);
        answered(&mut course, "--dispatchers 8", "throughput", 12.0);
        course.samples[1].answer["ok"] = false.into();
        assert_eq!(course.settings(true), ["--dispatchers 1"]);
        course.samples[0].answer["ok"] = false.into();
        assert_eq!(course.settings(true), ["--dispatchers 8"]);
    }

    #[test]
    fn less_time_is_the_better_setting() {
        let mut course = course("hello-idle", "duroxide");
        answered(&mut course, "--dispatchers 2", "p50", 160.0);
        answered(&mut course, "--dispatchers 8", "p50", 80.0);
        assert_eq!(course.settings(true), ["--dispatchers 8"]);
    }

    #[test]
    fn a_sweep_measures_all_settings_in_every_round() {
        let mut course = course("sweep", "outlast");
        answered(&mut course, "--dispatchers 1", "throughput_at_1", 10.0);
        assert_eq!(course.settings(true).len(), 7);
        assert_eq!(course.counted(true).len(), 1);
    }

    #[test]
    fn incomplete_work_is_reported() {
        let course = course("hello", "outlast");
        let answer = json!({"ok": false, "expected": 9, "completed": 5, "failed": 1, "wrong": 1,
                            "figures": {"throughput": {"value": 10.0, "unit": "x/s"}}});
        let described = course.scenario.describe(&Sample { setting: String::new(), answer });
        assert_eq!(described, "10.0 x/s; of 9: 1 failed, 1 wrong, 2 not done in time");
    }
}
