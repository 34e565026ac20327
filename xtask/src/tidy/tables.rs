//! The tables of the rules, from xtask/tidy.toml. The file explains the fields.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The file of the tables.
pub(super) const PATH: &str = "xtask/tidy.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tables {
    pub(super) root: Vec<String>,
    pub(super) foreign_names: Vec<String>,
    pub(super) edges: BTreeMap<String, Vec<String>>,
    pub(super) refused_dependencies: Vec<RefusedDependency>,
    pub(super) refused: Vec<Refused>,
    pub(super) allowed: Vec<Allowed>,
    pub(super) sql: Sql,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RefusedDependency {
    pub(super) rule: String,
    pub(super) of: Vec<String>,
    #[serde(default)]
    pub(super) except: Vec<String>,
    pub(super) on: Vec<String>,
    pub(super) only: Option<Vec<String>>,
    pub(super) without: Option<String>,
    #[serde(default)]
    pub(super) unless_optional: bool,
    pub(super) why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Refused {
    pub(super) rule: String,
    pub(super) read: Read,
    pub(super) texts: Vec<String>,
    pub(super) files: Vec<String>,
    #[serde(default)]
    pub(super) except: Vec<String>,
    #[serde(default)]
    pub(super) only_tests: bool,
    pub(super) why: String,
}

/// The parts of a file that are searched.
#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
pub(super) enum Read {
    /// Rust without comments and literals.
    Code,
    /// The starts of paths, in any file.
    Paths,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Allowed {
    #[serde(rename = "in")]
    pub(super) place: String,
    pub(super) texts: Vec<String>,
    why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sql {
    pub(super) first: Vec<String>,
    pub(super) later: Vec<String>,
    pub(super) exempt: Vec<String>,
    pub(super) run: Vec<String>,
    pub(super) built: Vec<String>,
    pub(super) changed: Vec<String>,
    pub(super) may_build: Vec<String>,
}

impl Tables {
    /// Parses the file. Every row must be usable: a package that a row allows has a row, the rule of a row exists, and an
    /// exception names a refused text and a reason.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let tables: Self = toml::from_str(text).map_err(|error| format!("{PATH}: {error}"))?;
        let allowed = tables.edges.values().flatten().filter(|name| *name != "*");
        if let Some(name) = allowed.into_iter().find(|name| !tables.edges.contains_key(*name)) {
            return Err(format!("{PATH}: `{name}` has no row in the table `edges`"));
        }
        let rules = tables.refused.iter().map(|row| &row.rule);
        let rules = rules.chain(tables.refused_dependencies.iter().map(|row| &row.rule));
        if let Some(name) = rules.into_iter().find(|name| super::RULES.iter().all(|rule| rule.name != **name))
        {
            return Err(format!("{PATH}: there is no rule `{name}`"));
        }
        let is_refused = |text: &String| tables.refused.iter().any(|row| row.texts.contains(text));
        let is_usable = |row: &&Allowed| !row.why.is_empty() && row.texts.iter().all(is_refused);
        match tables.allowed.iter().find(|row| !is_usable(row)) {
            Some(Allowed { place, .. }) => {
                Err(format!("{PATH}: `{place}` names a text that is not refused, or no reason"))
            }
            None => Ok(tables),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_cannot_be_used_are_refused() {
        let text = include_str!("../../tidy.toml");
        assert!(Tables::parse(text).is_ok());
        for (old, new) in [
            ("engine = [\"model\"]", "engine = [\"modle\"]"),
            ("texts = [\"getrandom::\"]", "texts = [\"getrandom\"]"),
            ("\"the owner of the threads\"", "\"\""),
            ("rule = \"sleep\"", "rule = \"slep\""),
            ("root = [", "roots = ["),
        ] {
            assert!(text.contains(old), "{old}");
            assert!(Tables::parse(&text.replace(old, new)).is_err(), "{new}");
        }
    }
}
