//! An index of the public names of the crates, read from formatted source.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::repo::Repo;

/// Names of types, functions, modules, macros and features, and the members of each type.
#[derive(Default)]
pub(super) struct Api {
    names: BTreeSet<String>,
    members: BTreeMap<String, BTreeSet<String>>,
    verbs: BTreeSet<String>,
}

impl Api {
    pub(super) fn of(repo: &Repo) -> Self {
        let mut api = Self::default();
        let is_source = |path: &str| path.starts_with("crates/") && path.contains("/src/");
        for file in repo.with_extension("rs").filter(|file| is_source(&file.path)) {
            if !file.path.starts_with("crates/cli/") {
                let module = file.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
                api.names.insert(module.to_string());
                api.read(&file.text);
            } else {
                api.read_verbs(&file.text);
            }
        }
        for package in &repo.packages {
            api.names.insert(package.name.replace('-', "_"));
            api.names.insert(package.name.to_string());
            api.names.extend(package.features.keys().cloned());
        }
        // Validations are named in a list.
        if let Some(list) = repo.file("crates/conformance/src/catalogue.rs") {
            let words = list.text.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
            api.names.extend(words.filter(|word| word.starts_with("test_")).map(str::to_string));
        }
        api
    }

    /// A type, a function, `Type::member`, `value.method(..)`, or a path that ends in one of these.
    pub(super) fn has(&self, name: &str) -> bool {
        let path = name.split('(').next().unwrap_or_default().trim_end_matches('!');
        let path = path.rsplit('.').next().unwrap_or_default();
        let parts: Vec<&str> = path.split("::").collect();
        match parts.as_slice() {
            [.., owner, member] if owner.starts_with(|char: char| char.is_ascii_uppercase()) => {
                self.members.get(*owner).is_some_and(|members| members.contains(*member))
            }
            [.., last] => self.names.contains(*last),
            [] => false,
        }
    }

    pub(super) fn has_verb(&self, verb: &str) -> bool {
        self.verbs.contains(verb)
    }

    /// Adds the names that a source file declares.
    fn read(&mut self, text: &str) {
        let mut owner = None;
        for line in text.lines() {
            if line == "}" || (!line.starts_with(' ') && line.ends_with('{')) {
                owner = owner_of(line);
            }
            self.names.extend(item(line.trim_start()).map(str::to_string));
            let member = line.strip_prefix("    ").filter(|line| !line.starts_with(' ')).and_then(member);
            if let (Some(owner), Some(member)) = (owner, member) {
                self.names.insert(member.to_string());
                self.members.entry(owner.to_string()).or_default().insert(member.to_string());
            }
        }
    }

    /// Variants of the enums whose names end in `Command`, as clap spells them.
    fn read_verbs(&mut self, text: &str) {
        let mut inside = false;
        for line in text.lines() {
            if line.contains("enum ") && line.ends_with("Command {") {
                inside = true;
            } else if line == "}" {
                inside = false;
            } else if let Some(variant) = line.strip_prefix("    ").filter(|_| inside).and_then(member) {
                let kebab = variant.char_indices().fold(String::new(), |kebab, (at, char)| {
                    let hyphen = if at > 0 && char.is_ascii_uppercase() { "-" } else { "" };
                    kebab + hyphen + &char.to_ascii_lowercase().to_string()
                });
                self.verbs.insert(kebab);
            }
        }
    }
}

/// The type that a block at the left margin is about.
fn owner_of(line: &str) -> Option<&str> {
    let line = line.strip_suffix('{')?.trim();
    let (kind, rest) = line.strip_prefix("pub ").unwrap_or(line).split_once([' ', '<'])?;
    let head = match kind {
        "struct" | "enum" | "trait" => rest,
        "impl" => rest.rsplit(" for ").next()?.rsplit("> ").next()?,
        _ => return None,
    };
    name_at(head.trim_start().rsplit("::").next()?)
}

/// The name that a public item declares.
fn item(line: &str) -> Option<&str> {
    let line = line.strip_prefix("macro_rules! ").or_else(|| {
        let (kind, rest) = without(line.strip_prefix("pub ")?, &["async "]).split_once(' ')?;
        matches!(kind, "struct" | "enum" | "trait" | "fn" | "mod" | "type" | "const").then_some(rest)
    })?;
    name_at(line)
}

/// The name of a method, field or variant.
fn member(line: &str) -> Option<&str> {
    let line = without(line, &["pub ", "const ", "async "]);
    let name = name_at(without(line, &["fn "]))?;
    let rest = &line[line.find(name)? + name.len()..];
    let is_variant = name.starts_with(|char: char| char.is_ascii_uppercase())
        && (rest.is_empty() || rest.starts_with([',', '(', ' ']));
    (line.starts_with("fn ") || rest.starts_with(": ") || is_variant).then_some(name)
}

fn without<'a>(line: &'a str, words: &[&str]) -> &'a str {
    words.iter().fold(line, |line, word| line.strip_prefix(word).unwrap_or(line))
}

fn name_at(text: &str) -> Option<&str> {
    let end = text.find(|char: char| !char.is_ascii_alphanumeric() && char != '_').unwrap_or(text.len());
    Some(&text[..end]).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_and_members_are_found_by_their_owner() {
        let mut api = Api::default();
        api.read(
            "pub struct Client {\n    pub limits: Limits,\n    hidden: u8,\n}\nimpl<'a> Builder<'a> {\n    pub fn send(self) {\n        let sent: u8;\n    }\n}\n\
             impl fmt::Display for ProviderError {\n    fn fmt(&self) {}\n}\npub trait Provider: Any {\n    async fn read(&self);\n}\n\
             pub enum Fault {\n    Lost,\n    Late {\n        by: u8,\n    },\n}\nmacro_rules! tests {\n",
        );
        let found =
            "Client Client::limits Builder::send x.send(..) Provider::read Fault::Late tests! a::b::Fault";
        for name in found.split(' ') {
            assert!(api.has(name), "{name}");
        }
        for name in ["Client::send", "Fault::by", "sent", "Fault::Client", "Late::by", ""] {
            assert!(!api.has(name), "{name}");
        }
    }

    #[test]
    fn verbs_are_spelled_as_on_the_command_line() {
        let mut api = Api::default();
        api.read_verbs("pub(crate) enum InstanceCommand {\n    /// Lists.\n    List(Args),\n    ShowAll,\n}\nenum Other {\n    None,\n}\n");
        assert!(api.has_verb("list") && api.has_verb("show-all"));
        assert!(!api.has_verb("none") && !api.has_verb("List"));
    }
}
