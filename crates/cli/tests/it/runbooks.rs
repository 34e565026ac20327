//! The runbooks of docs/operations.md: there are ten incidents, each with a command that shows it and one that fixes it, and every
//! command exists with its options.

use crate::support::run;
use std::fs;
use std::path::Path;

/// The programs whose commands fix an incident.
const FIXING: [&str; 3] = ["outlast ", "systemctl ", "kubectl "];

#[test]
fn runbooks_have_ten_incidents_whose_commands_exist() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    let page = fs::read_to_string(page).unwrap();
    let runbooks = page.split("\n## Runbooks\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let incidents: Vec<&str> = runbooks
        .lines()
        .filter(|line| line.trim_start_matches("| ").starts_with(|letter: char| letter.is_ascii_digit()))
        .collect();
    assert_eq!(incidents.len(), 10, "{incidents:?}");
    for row in &incidents {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let [incident, shows, fixes] = cells[..] else { panic!("three columns: {row}") };
        assert!(shows.contains("`outlast "), "a command shows it: {incident}");
        let is_command = |code: &str| FIXING.iter().any(|program| code.starts_with(program));
        assert!(fixes.split('`').skip(1).step_by(2).any(is_command), "a command fixes it: {incident}");
    }
    let commands = page.split('`').skip(1).step_by(2).filter(|code| code.starts_with("outlast "));
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
