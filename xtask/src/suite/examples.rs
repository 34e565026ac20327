//! Runs every example of every package: each asserts its own results.

use outlast_toolkit::process;

use super::{Outcome, Tally, programs};

pub(super) fn run() -> Result<Outcome, String> {
    let examples = programs::examples()?;
    let mut tally = Tally::default();
    for example in &examples {
        let mut command = example.command();
        command.current_dir(process::root());
        tally.check(format!("cargo run {}", example.selector), process::stream(command, |_| {})?.success());
    }
    println!("{} example(s)", examples.len());
    tally.check("the workspace has no examples", !examples.is_empty());
    Ok(Outcome::Ran(tally))
}
