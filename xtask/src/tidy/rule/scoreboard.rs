//! The scoreboard is generated: nobody edits the page, and it shows the newest figures.

use crate::scoreboard::{PAGE, generate};
use crate::tidy::repo::{Finding, Repo};

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let Some(page) = repo.file(PAGE) else { return Vec::new() };
    match generate(&crate::process::root()) {
        Ok(expected) if expected == page.text => Vec::new(),
        Ok(_) => vec![page.finding(1, "run `cargo xtask scoreboard`: the page does not show its figures")],
        Err(problem) => vec![page.finding(1, problem)],
    }
}
