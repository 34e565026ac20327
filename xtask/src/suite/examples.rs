//! Runs every example of every package: a stale example is a lie.

use super::{Outcome, Tally};
use crate::metadata::{self, Package};
use crate::process;

pub(super) fn run() -> Result<Outcome, String> {
    let calls = calls(&metadata::load()?);
    let mut tally = Tally::default();
    for call in &calls {
        let command = process::cargo(call);
        let name = process::display(&command);
        tally.check(name, process::stream(command, |_| {})?.success());
    }
    println!("{} example(s)", calls.len());
    Ok(Outcome::Ran(tally))
}

fn calls(packages: &[Package]) -> Vec<Vec<String>> {
    let examples = packages.iter().flat_map(|package| {
        let examples =
            package.targets.iter().filter(|target| target.kinds.iter().any(|kind| kind == "example"));
        examples.map(move |example| (package, example))
    });
    examples
        .map(|(package, example)| {
            let mut call =
                ["run", "-q", "-p", &package.name, "--example", &example.name].map(str::to_string).to_vec();
            if !example.required_features.is_empty() {
                call.extend(["--features".to_string(), example.required_features.join(",")]);
            }
            call
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Target;

    #[test]
    fn every_example_of_every_package_is_called_with_the_features_it_needs() {
        let target = |name: &str, kind: &str, features: &[&str]| Target {
            name: name.to_string(),
            kinds: vec![kind.to_string()],
            required_features: features.iter().map(ToString::to_string).collect(),
        };
        let package = Package {
            name: "outlast".to_string(),
            targets: vec![
                target("outlast", "lib", &[]),
                target("a", "example", &[]),
                target("b", "example", &["x", "y"]),
            ],
            ..Package::default()
        };
        let calls: Vec<String> = calls(&[package]).iter().map(|call| call.join(" ")).collect();
        assert_eq!(calls, ["run -q -p outlast --example a", "run -q -p outlast --example b --features x,y"]);
    }
}
