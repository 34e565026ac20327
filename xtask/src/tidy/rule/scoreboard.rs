//! docs/reliability.md is generated from the recorded figures.

use crate::scoreboard::{PAGE, generate};
use crate::tidy::repo::{Finding, Repo};

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let Some(page) = repo.file(PAGE) else { return Vec::new() };
    match generate(&outlast_toolkit::process::root()) {
        Ok(expected) if expected == page.text => Vec::new(),
        Ok(_) => vec![page.finding(1, "run `cargo xtask scoreboard`: the page does not show its figures")],
        Err(problem) => vec![page.finding(1, problem)],
    }
}
