//! The tables of a manifest.

use toml::de::DeTable;

/// A dependency that a manifest declares.
#[derive(Debug, PartialEq)]
pub(super) struct Declared {
    /// The line of the name, counted from 1.
    pub(super) line: usize,
    pub(super) name: String,
    /// The dependency is a folder.
    pub(super) has_path: bool,
}

/// The dependencies in a table of a manifest, for example `workspace.dependencies`, in the order of their lines.
pub(super) fn dependencies(text: &str, table: &str) -> Vec<Declared> {
    let Ok(manifest) = DeTable::parse(text) else { return Vec::new() };
    let root = manifest.get_ref();
    let found = table.split('.').try_fold(root, |table, key| table.get(key)?.get_ref().as_table());
    let declared = found.into_iter().flatten().map(|(name, value)| Declared {
        line: text[..name.span().start].matches('\n').count() + 1,
        name: name.get_ref().to_string(),
        has_path: value.get_ref().get("path").is_some(),
    });
    let mut declared: Vec<Declared> = declared.collect();
    declared.sort_by_key(|declared| declared.line);
    declared
}

/// The lints that a manifest sets: the tool, the name and the level of each.
pub(super) fn lints(text: &str, table: &[&str]) -> Vec<(String, String, String)> {
    let Ok(manifest) = text.parse::<toml::Table>() else { return Vec::new() };
    let tools = table.iter().try_fold(&manifest, |table, key| table.get(*key)?.as_table());
    let tools = tools.into_iter().flatten().filter_map(|(tool, lints)| Some((tool, lints.as_table()?)));
    let all = tools.flat_map(|(tool, lints)| lints.iter().map(move |(name, level)| (tool, name, level)));
    let level_of = |level: &toml::Value| level.as_str().map_or_else(|| format!("{level:?}"), str::to_string);
    all.map(|(tool, name, level)| (tool.clone(), name.clone(), level_of(level))).collect()
}

/// Whether the package inherits the lints of the workspace.
pub(super) fn inherits_lints(text: &str) -> bool {
    let manifest = text.parse::<toml::Table>().unwrap_or_default();
    manifest.get("lints").and_then(|lints| lints.get("workspace")) == Some(&toml::Value::Boolean(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_found_in_every_form() {
        let text = "[dependencies]\nb = \"1\"\na.workspace = true\n[dependencies.c]\nversion = \"1\"\npath = \"c\"\n";
        let text = format!("{text}[dev-dependencies]\nd = \"1\"");
        let found = dependencies(&text, "dependencies");
        let found: Vec<(usize, &str, bool)> =
            found.iter().map(|declared| (declared.line, declared.name.as_str(), declared.has_path)).collect();
        assert_eq!(found, [(2, "b", false), (3, "a", false), (4, "c", true)]);
        assert_eq!(dependencies(&text, "workspace.dependencies"), []);
    }

    #[test]
    fn lints_are_read_from_tables_and_dotted_keys() {
        let text = "[workspace.lints.rust]\na = \"warn\"\n[workspace.lints]\nclippy.b = \"deny\"";
        let found = lints(text, &["workspace", "lints"]);
        let found: Vec<String> =
            found.iter().map(|(tool, name, level)| format!("{tool} {name} {level}")).collect();
        assert_eq!(found, ["clippy b deny", "rust a warn"]);
    }
}
