//! Checks the names between backticks.

use super::api::Api;
use crate::Cli;
use crate::tidy::repo::Repo;

/// Subcommands of cargo that a skill may name.
const CARGO: &[&str] = &["add", "build", "run", "test"];

/// The texts between single backticks.
pub(super) fn quoted(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

/// The reason why a name is wrong.
pub(super) fn mistake(name: &str, repo: &Repo, api: &Api) -> Option<String> {
    let words: Vec<&str> = name.split_whitespace().collect();
    match words.as_slice() {
        ["cargo", "xtask", command, ..] => {
            (!Cli::has_command(command)).then(|| format!("`{name}`: xtask has no command `{command}`"))
        }
        ["cargo", rest @ ..] => cargo(name, rest, repo),
        ["outlast", verbs @ ..] => {
            let mut verbs = verbs.iter().take_while(|verb| !verb.starts_with('-'));
            let unknown = verbs.find(|verb| !api.has_verb(verb));
            unknown.map(|verb| format!("`{name}`: the command has no `{verb}`"))
        }
        [path] if path.starts_with(['.', '~']) && path.contains('/') => None,
        [path] if path.contains('/') => {
            (!repo.has(path)).then(|| format!("`{path}`: there is no such file or folder"))
        }
        [_] => (!api.has(name)).then(|| format!("`{name}`: there is no such name in the public API")),
        _ => Some(format!("`{name}` is neither a command nor a name: write it without backticks")),
    }
}

fn cargo(name: &str, words: &[&str], repo: &Repo) -> Option<String> {
    if !words.first().is_some_and(|word| CARGO.contains(word)) {
        return Some(format!("`{name}`: cargo has no such command, or the rule does not know it"));
    }
    let example = words.iter().position(|word| *word == "--example").and_then(|at| words.get(at + 1))?;
    let path = format!("crates/outlast/examples/{example}.rs");
    repo.file(&path).is_none().then(|| format!("`{name}`: there is no `{path}`"))
}
