//! Code blocks of pages are valid: TOML, JSON and YAML parse, and calls of cargo name what exists.
//!
//! Rust blocks are compiled by tests (`tools/release/src/book/programs.rs`), calls of `outlast` are parsed by a test of the command
//! (`crates/cli/src/documented.rs`), and SQL is prepared by a test of its store.

mod yaml;

use clap::Parser as _;
use outlast_toolkit::blocks::{self, Block};

use crate::Cli;
use crate::tidy::repo::{Finding, Repo};

/// Languages of blocks that this rule does not read.
const OTHERS: &[&str] = &["", "console", "diff", "mermaid", "python", "rs", "sh", "sql", "text"];
/// Subcommands of cargo that a page may name.
const CARGO: &[&str] =
    &["add", "bench", "build", "doc", "fmt", "clippy", "install", "new", "run", "test", "update", "xtask"];
/// The start of a line that is a command.
const COMMANDS: [&str; 3] = ["$ ", "cargo ", "outlast "];

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repo.with_extension("md").filter(|file| !file.path.starts_with("testdata/")) {
        for block in blocks::of(&file.text) {
            let here = |(line, message): (usize, String)| file.finding(line, message);
            findings.extend(contents(&block, repo).into_iter().map(here));
            for call in block.calls() {
                findings.extend(mistake(&call.words, repo).map(|message| file.finding(call.line, message)));
            }
        }
    }
    findings
}

/// The lines of a block that are wrong, each with the reason.
fn contents(block: &Block, repo: &Repo) -> Vec<(usize, String)> {
    let at_fence = |message: String| vec![(block.line, message)];
    match block.language.as_str() {
        "toml" => match toml::from_str::<toml::Table>(&block.text) {
            Ok(table) => {
                unknown_features(&table, repo).into_iter().map(|message| (block.line, message)).collect()
            }
            Err(error) => at_fence(format!("this is not TOML: {}", error.message())),
        },
        "json" => match serde_json::from_str::<serde_json::Value>(&block.text) {
            Ok(_) => Vec::new(),
            Err(error) => at_fence(format!("this is not JSON: {error}")),
        },
        "yaml" => {
            let wrong = yaml::mistake(&block.text).into_iter();
            wrong.map(|(line, message)| (block.line + line, format!("this is not YAML: {message}"))).collect()
        }
        "text" => {
            let lines = block.text.lines().zip(block.line + 1..);
            let commands = lines.filter(|(line, _)| COMMANDS.iter().any(|command| line.starts_with(command)));
            let message = "a command is in a block of `sh` or `console`, so that it is parsed".to_string();
            commands.map(|(_, number)| (number, message.clone())).collect()
        }
        rust if rust == "rust" || rust.starts_with("rust,") => Vec::new(),
        other if OTHERS.contains(&other) => Vec::new(),
        other => {
            at_fence(format!("no check reads blocks of `{other}`: use another language, or add a check"))
        }
    }
}

/// Features of packages of this workspace that do not exist.
fn unknown_features(table: &toml::Table, repo: &Repo) -> Vec<String> {
    let sections = ["dependencies", "dev-dependencies"]
        .map(|name| table.get(name).and_then(|section| section.as_table()));
    let tables = sections.into_iter().flatten().chain([table]);
    let mut unknown = Vec::new();
    for (name, dependency) in tables.flatten() {
        let name = dependency.get("package").and_then(|package| package.as_str()).unwrap_or(name);
        let Some(package) = repo.packages.iter().find(|package| package.name.as_str() == name) else {
            continue;
        };
        let features = dependency.get("features").and_then(|features| features.as_array());
        let named = features.into_iter().flatten().filter_map(|feature| feature.as_str());
        let missing = named.filter(|feature| !package.features.contains_key(*feature));
        unknown.extend(missing.map(|feature| format!("{name} has no feature `{feature}`")));
    }
    unknown
}

/// The mistake in a call of cargo.
fn mistake(words: &[String], repo: &Repo) -> Option<String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["sh" | "bash", "-c", script, ..] => {
            blocks::commands(script).iter().find_map(|words| mistake(words, repo))
        }
        ["cargo", "xtask", args @ ..] => xtask(args, repo),
        ["cargo", "help" | "--version"] => None,
        ["cargo", command, args @ ..] => match CARGO.contains(command) {
            true => cargo(args, repo),
            false => Some(format!("cargo has no command `{command}`, or this rule does not know it")),
        },
        _ => None,
    }
}

fn xtask(args: &[&str], repo: &Repo) -> Option<String> {
    let parsed = Cli::try_parse_from(["xtask"].iter().chain(args));
    if let Err(error) = parsed
        && error.use_stderr()
    {
        let text = error.to_string();
        return Some(text.lines().next().unwrap_or_default().to_string());
    }
    // `cargo xtask postgres -- COMMAND`
    let inner = args.iter().position(|word| *word == "--").map(|at| &args[at + 1..])?;
    mistake(&inner.iter().map(ToString::to_string).collect::<Vec<_>>(), repo)
}

/// The packages, examples, features and folders that the options of cargo name.
fn cargo(args: &[&str], repo: &Repo) -> Option<String> {
    let ours = args.iter().take_while(|word| **word != "--");
    let options: Vec<&str> = ours.copied().collect();
    let values = |names: &'static [&'static str]| {
        options.windows(2).filter(move |pair| names.contains(&pair[0])).map(|pair| pair[1])
    };
    let package = |name: &str| repo.packages.iter().find(|package| package.name.as_str() == name);
    let mut chosen: Vec<_> = values(&["-p", "--package"]).collect();
    if let Some(unknown) = chosen.iter().find(|name| package(name).is_none()) {
        return Some(format!("there is no package `{unknown}`"));
    }
    if let Some(folder) = values(&["--path"]).find(|path| !repo.has(path)) {
        return Some(format!("there is no folder `{folder}`"));
    }
    let installed = values(&["--path"]).filter_map(|path| path.strip_prefix("crates/"));
    let installed: Vec<String> = installed.map(|name| format!("outlast-{name}")).collect();
    chosen.extend(installed.iter().map(String::as_str));
    let is_feature = |feature: &str| {
        chosen.iter().filter_map(|name| package(name)).any(|p| p.features.contains_key(feature))
    };
    let mut features = values(&["--features"]).flat_map(|list| list.split(','));
    if let Some(unknown) = features.find(|feature| !chosen.is_empty() && !is_feature(feature)) {
        return Some(format!("{} has no feature `{unknown}`", chosen.join(", ")));
    }
    let mut examples = values(&["--example"]);
    let unknown = examples
        .find(|name| !repo.files.iter().any(|file| file.path.ends_with(&format!("/examples/{name}.rs"))))?;
    Some(format!("there is no example `{unknown}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::repo::printed;

    fn found(page: &str) -> Vec<String> {
        printed(check(&Repo::of(&[("docs/a.md", page), ("crates/outlast/examples/saga.rs", "")])))
    }

    #[test]
    fn blocks_that_do_not_parse_are_found_with_their_lines() {
        assert_eq!(found("```toml\n[a]\nb = 1\n```\n```json\n{\"a\": [1]}\n```\n```rust\nx\n```\n"), [""; 0]);
        for (page, line) in [
            ("a\n```toml\nb = \n```\n", "docs/a.md:2: this is not TOML"),
            ("```json\n{\"a\": }\n```\n", "docs/a.md:1: this is not JSON"),
            ("```yaml\na:\n\t- b\n```\n", "docs/a.md:3: this is not YAML"),
            ("```ini\na=b\n```\n", "docs/a.md:1: no check reads blocks of `ini`"),
            ("```text\nan answer\noutlast demo\n```\n", "docs/a.md:3: a command is in a block"),
        ] {
            let findings = found(page);
            assert!(findings.len() == 1 && findings[0].starts_with(line), "{page}: {findings:?}");
        }
    }

    #[test]
    fn calls_of_cargo_name_what_exists() {
        let fine = "```console\n$ cargo run --example saga\n$ cargo xtask test --quick\n$ cargo xtask postgres -- cargo test\n$ other --x\n```\n";
        assert_eq!(found(fine), [""; 0]);
        for (call, part) in [
            ("cargo xtask test --quik", "docs/a.md:2: error: unexpected argument '--quik'"),
            ("cargo xtask none", "docs/a.md:2: error: unrecognized subcommand 'none'"),
            (
                "cargo xtask postgres -- sh -c 'cargo run --example none'",
                "docs/a.md:2: there is no example `none`",
            ),
            ("cargo test -p none", "docs/a.md:2: there is no package `none`"),
            ("cargo install --path crates/none", "docs/a.md:2: there is no folder `crates/none`"),
            ("cargo bild", "docs/a.md:2: cargo has no command `bild`"),
        ] {
            let findings = found(&format!("```console\n$ {call}\n```\n"));
            assert!(findings.len() == 1 && findings[0].starts_with(part), "{call}: {findings:?}");
        }
    }
}
