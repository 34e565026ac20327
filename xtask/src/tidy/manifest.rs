//! Reads as much TOML as the rules about manifests need: tables, keys and single values.

/// A `key = value` of a manifest.
#[derive(Debug, PartialEq)]
pub(super) struct Entry<'a> {
    /// Counted from 1.
    pub(super) line: usize,
    /// The table that it is in, and the front of a dotted key: `lints.workspace = true` is in `lints`.
    pub(super) table: String,
    pub(super) key: &'a str,
    /// As written; of a value that spans lines, its first line.
    pub(super) value: &'a str,
}

pub(super) fn entries(text: &str) -> Vec<Entry<'_>> {
    let mut table = "";
    let mut open = 0_usize;
    let mut entries = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        // Inside an array that spans lines there are no keys.
        if open > 0 {
            open = (open + line.matches('[').count()).saturating_sub(line.matches(']').count());
        } else if let Some(header) = line.strip_prefix('[') {
            table = header.split(']').next().unwrap_or_default().trim_matches('[');
        } else if let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) {
            open = value.matches('[').count().saturating_sub(value.matches(']').count());
            entries.push(entry(index + 1, table, key.trim(), value.trim()));
        }
    }
    entries
}

fn entry<'a>(line: usize, table: &str, key: &'a str, value: &'a str) -> Entry<'a> {
    let (front, key) = key.rsplit_once('.').map_or((None, key), |(front, key)| (Some(front), key));
    let parts = [Some(table).filter(|table| !table.is_empty()), front];
    let table = parts.into_iter().flatten().collect::<Vec<_>>().join(".");
    Entry { line, table, key, value }
}

/// The dependencies that a manifest declares in the table named `dependencies`: line, name, whole value.
pub(super) fn dependencies<'a>(text: &'a str, dependencies: &str) -> Vec<(usize, String, &'a str)> {
    let mut found: Vec<(usize, String, &str)> = Vec::new();
    for Entry { line, table, key, value } in entries(text) {
        // `a = ..` is in the table itself; `a.workspace = true` and `[dependencies.a]` are one level down.
        let name = match table.strip_prefix(dependencies) {
            Some("") => Some(key.to_string()),
            Some(rest) => rest.strip_prefix('.').map(str::to_string),
            None => None,
        };
        if let Some(name) = name.filter(|name| found.last().is_none_or(|(_, last, _)| last != name)) {
            found.push((line, name, value));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_dotted_keys_are_the_same() {
        let text = "a.b = 1\n# c = 2\n[t]\nd = [\n  \"e = 3\",\n]\nf.g = 4\n[[bin]]\nname = \"x\"";
        let found: Vec<String> =
            entries(text).iter().map(|e| format!("{} {}|{}={}", e.line, e.table, e.key, e.value)).collect();
        assert_eq!(found, ["1 a|b=1", "4 t|d=[", "7 t.f|g=4", "9 bin|name=\"x\""]);
    }

    #[test]
    fn dependencies_are_found_in_every_form() {
        let text = "[dependencies]\na = \"1\"\nb.workspace = true\n[dependencies.c]\nversion = \"1\"\npath = \"c\"\n";
        let text = format!("{text}[dev-dependencies]\nd = \"1\"");
        let found: Vec<(usize, String)> =
            dependencies(&text, "dependencies").into_iter().map(|(line, name, _)| (line, name)).collect();
        assert_eq!(found, [(2, "a".to_string()), (3, "b".to_string()), (5, "c".to_string())]);
    }
}
