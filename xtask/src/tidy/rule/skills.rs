//! Every path, command, type and method between backticks in a skill exists.
//!
//! Names of other libraries are listed in xtask/tidy.toml.

mod api;

use self::api::Api;
use crate::Cli;
use crate::tidy::markdown;
use crate::tidy::repo::{File, Finding, Repo};

const FOLDER: &str = "skills/";
/// Subcommands of cargo that a skill may name.
const CARGO: &[&str] = &["add", "build", "run", "test"];

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let skills: Vec<&File> = repo.with_extension("md").filter(|file| file.path.starts_with(FOLDER)).collect();
    if skills.is_empty() {
        return Vec::new();
    }
    let api = Api::of(repo);
    let mut findings = Vec::new();
    for file in skills {
        findings.extend(front_matter(file));
        for (line, prose) in markdown::prose(&file.text) {
            let quoted = prose.split('`').skip(1).step_by(2);
            let ours = quoted.filter(|name| !repo.tables.foreign_names.iter().any(|foreign| foreign == name));
            let unknown = ours.filter_map(|name| mistake(name, repo, &api));
            findings.extend(unknown.map(|message| file.finding(line, message)));
        }
        findings.extend(code_blocks(file));
    }
    findings
}

/// Assistants find a skill by its name, which is the name of its folder, and select it by its description.
fn front_matter(file: &File) -> Option<Finding> {
    let folder = file.path.strip_suffix("/SKILL.md")?.rsplit('/').next()?;
    let mut lines = file.text.lines();
    let name = format!("name: {folder}");
    let is_right = lines.next() == Some("---")
        && lines.next() == Some(name.as_str())
        && lines.next().is_some_and(|line| line.len() <= 1_024 && line.starts_with("description: "))
        && lines.next() == Some("---");
    let message =
        format!("the first lines must be `---`, `{name}`, a `description:` of at most 1024 bytes, and `---`");
    (!is_right).then(|| file.finding(1, message))
}

/// The doc tests compile every Rust block: no block may be exempt from them.
fn code_blocks(file: &File) -> Vec<Finding> {
    let fences =
        file.text.lines().zip(1..).filter_map(|(line, number)| Some((number, line.strip_prefix("```")?)));
    let exempt = fences.filter(|(_, info)| !matches!(*info, "" | "rust" | "rust,no_run" | "sh"));
    let message =
        |info: &str| format!("a block of `{info}` is not compiled: use `rust`, `rust,no_run` or `sh`");
    exempt.map(|(line, info)| file.finding(line, message(info))).collect()
}

/// The reason why a name is wrong.
fn mistake(name: &str, repo: &Repo, api: &Api) -> Option<String> {
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

/// The mistake in a call of cargo: an unknown command, or an example that does not exist.
fn cargo(name: &str, words: &[&str], repo: &Repo) -> Option<String> {
    if !words.first().is_some_and(|word| CARGO.contains(word)) {
        return Some(format!("`{name}`: cargo has no such command, or the rule does not know it"));
    }
    let example = words.iter().position(|word| *word == "--example").and_then(|at| words.get(at + 1))?;
    let path = format!("crates/outlast/examples/{example}.rs");
    repo.file(&path).is_none().then(|| format!("`{name}`: there is no `{path}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::repo::printed;

    const API: (&str, &str) = (
        "crates/runtime/src/client.rs",
        "pub struct Client {}\nimpl Client {\n    pub async fn start(&self) {}\n}\npub enum Fault {\n    Lost,\n}\n",
    );
    const CLI: (&str, &str) = (
        "crates/cli/src/args.rs",
        "enum Command {\n    Demo(A),\n    Instance(C),\n}\nenum InstanceCommand {\n    /// Show.\n    ShowAll(B),\n}\n",
    );

    fn found(prose: &str) -> Vec<String> {
        let example = ("crates/outlast/examples/a.rs", "");
        printed(check(&Repo::of(&[API, CLI, ("skills/README.md", prose), example])))
    }

    #[test]
    fn names_that_exist_are_accepted() {
        let names = "`Client`, `Client::start`, `Client::start(..)`, `ctx.start(..)`, `Fault::Lost`, `crates/cli`, `cargo xtask tidy`, \
            `outlast demo`, `outlast instance show-all`, `cargo run -p outlast --example a`, `async`, `.claude/skills`";
        assert_eq!(found(names), [""; 0]);
    }

    #[test]
    fn names_that_do_not_exist_are_refused() {
        let wrong = "Client::stop, Klient, Fault::Start, ctx.stop(..), crates/none, cargo xtask none, outlast none, \
            cargo run -p outlast --example b, cargo none, two words";
        for name in wrong.split(", ") {
            assert_eq!(found(&format!("text\n`{name}`")).len(), 1, "{name}");
        }
    }

    #[test]
    fn names_in_code_blocks_are_left_to_the_compiler_but_blocks_must_be_compiled() {
        assert_eq!(found("```rust\nlet x = `Klient`;\n```\n"), [""; 0]);
        assert_eq!(found("```rust,ignore\nx\n```\n").len(), 1);
    }

    #[test]
    fn the_front_matter_names_the_folder() {
        let skill = |text: &str| check(&Repo::of(&[("skills/a/SKILL.md", text)])).len();
        assert_eq!(skill("---\nname: a\ndescription: When to use it.\n---\ntext"), 0);
        assert_eq!(skill("---\nname: b\ndescription: When to use it.\n---\ntext"), 1);
        assert_eq!(skill("---\nname: a\n---\ntext"), 1);
        assert_eq!(skill("text"), 1);
    }
}
