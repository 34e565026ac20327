//! The tables of the rules, from xtask/tidy.toml.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The file of the tables.
pub(super) const PATH: &str = "xtask/tidy.toml";

/// The fields are explained in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tables {
    pub(super) root: Vec<String>,
    pub(super) foreign_names: Vec<String>,
    pub(super) edges: BTreeMap<String, Vec<String>>,
    pub(super) forbidden: BTreeMap<String, Vec<String>>,
    pub(super) refused_calls: BTreeMap<String, String>,
    pub(super) allowed_calls: Vec<AllowedCalls>,
}

/// An exception of `refused_calls`. The reason is for readers of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AllowedCalls {
    #[serde(rename = "in")]
    pub(super) place: String,
    pub(super) calls: Vec<String>,
    pub(super) why: String,
}

impl Tables {
    /// Parses the file. Every row must be usable: a package that a row allows has a row, and an exception names a refused call
    /// and a reason.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let tables: Self = toml::from_str(text).map_err(|error| format!("{PATH}: {error}"))?;
        let allowed = tables.edges.values().flatten().filter(|name| *name != "*");
        if let Some(name) = allowed.into_iter().find(|name| !tables.edges.contains_key(*name)) {
            return Err(format!("{PATH}: `{name}` has no row in the table `edges`"));
        }
        let is_usable = |row: &AllowedCalls| {
            !row.why.is_empty() && row.calls.iter().all(|call| tables.refused_calls.contains_key(call))
        };
        match tables.allowed_calls.iter().find(|row| !is_usable(row)) {
            Some(row) => {
                Err(format!("{PATH}: `{}` names a call that is not refused, or no reason", row.place))
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
            ("[\"getrandom::\"]", "[\"getrandom\"]"),
            ("\"the owner of the threads\"", "\"\""),
            ("root = [", "roots = ["),
        ] {
            assert!(text.contains(old), "{old}");
            assert!(Tables::parse(&text.replace(old, new)).is_err(), "{new}");
        }
    }
}
