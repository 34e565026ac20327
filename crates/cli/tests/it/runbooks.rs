//! The runbooks of docs/operations.md: there are twelve incidents, each with a command that shows it and one that fixes it, every
//! command of the runbooks and of the alerts exists with its options, and every alert has a row.

use crate::support::run;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The programs whose commands fix an incident.
const FIXING: [&str; 3] = ["outlast ", "systemctl ", "kubectl "];

fn document(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)).unwrap()
}

/// The rows of the runbooks.
fn incidents(page: &str) -> Vec<&str> {
    let runbooks = page.split("\n## Runbooks\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let is_row =
        |line: &&str| line.trim_start_matches("| ").starts_with(|letter: char| letter.is_ascii_digit());
    runbooks.lines().filter(is_row).collect()
}

#[test]
fn runbooks_have_twelve_incidents_whose_commands_exist() {
    let page = document("operations.md");
    let incidents = incidents(&page);
    assert_eq!(incidents.len(), 12, "{incidents:?}");
    for row in &incidents {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let [incident, shows, fixes] = cells[..] else { panic!("three columns: {row}") };
        assert!(shows.contains("`outlast "), "a command shows it: {incident}");
        let is_command = |code: &str| FIXING.iter().any(|program| code.starts_with(program));
        assert!(fixes.split('`').skip(1).step_by(2).any(is_command), "a command fixes it: {incident}");
    }
    let alerts = document("grafana/alerts.yaml");
    let codes = [&page, &alerts].into_iter().flat_map(|text| text.split('`').skip(1).step_by(2));
    let commands = codes.filter(|code| code.starts_with("outlast "));
    let mut checked = 0;
    for command in commands {
        let words: Vec<&str> = command.split_whitespace().skip(1).collect();
        let path: Vec<&str> = words
            .iter()
            .copied()
            .take_while(|word| {
                word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-')
                    && !word.starts_with('-')
            })
            .collect();
        let help = run([path.clone(), vec!["--help"]].concat());
        assert_eq!(help.code, Some(0), "`{command}`: {}", help.err);
        for option in words.iter().filter(|word| word.starts_with("--")) {
            let exists = help.out.split_whitespace().any(|word| word.trim_end_matches(',') == *option);
            assert!(exists, "`{command}`: {option} does not exist");
        }
        checked += 1;
    }
    assert!(checked > 20, "{checked} commands");
}

#[test]
fn each_alert_has_a_row_and_each_alert_of_a_row_exists() {
    let (page, alerts) = (document("operations.md"), document("grafana/alerts.yaml"));
    let alerts: BTreeSet<&str> =
        alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    let rows = incidents(&page);
    let firsts = rows.iter().map(|row| row.trim_matches('|').split(" | ").next().unwrap());
    let named: BTreeSet<&str> = firsts
        .flat_map(|incident| incident.split('`').skip(1).step_by(2))
        .filter(|code| code.starts_with("Outlast"))
        .collect();
    assert_eq!(named, alerts, "left are the rows of docs/operations.md, right are the alerts");
    assert!(alerts.len() > 10, "{alerts:?}");
}
