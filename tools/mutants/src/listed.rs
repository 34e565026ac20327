//! A mutant in the list of cargo-mutants, and the key of its outcome.

use std::path::Path;

use serde_json::Value;

use super::choice::{self, Spot};

/// One change to the code.
#[derive(Debug, Clone)]
pub(super) struct Mutant {
    pub(super) file: String,
    pub(super) function: String,
    /// The name in the output of cargo-mutants: file, line, column and change.
    pub(super) name: String,
    /// The name with a hash of the function instead of the line: the outcome stays valid when other code of the file
    /// changes, and becomes invalid when the function changes.
    pub(super) key: String,
    /// The change, if the function can select a mutant at run time.
    pub(super) spot: Option<Spot>,
}

/// Reads the output of `cargo mutants --list --json`. `root` is the folder of the files.
pub(super) fn read(json: &str, root: &Path) -> Result<Vec<Mutant>, String> {
    let json: Value =
        serde_json::from_str(json).map_err(|error| format!("not the JSON of a list: {error}"))?;
    let list = json.as_array().ok_or("not a list of mutants")?;
    list.iter().map(|mutant| one(mutant, root)).collect()
}

/// Reads one mutant of the list.
fn one(json: &Value, root: &Path) -> Result<Mutant, String> {
    let text = |value: &Value| value.as_str().map(str::to_string);
    let (Some(name), Some(file)) = (text(&json["name"]), text(&json["file"])) else {
        return Err(format!("a mutant without name or file: {json}"));
    };
    let source = std::fs::read_to_string(root.join(&file)).map_err(|error| format!("{file}: {error}"))?;
    // A constant has no function around it: then its own line counts.
    let span = if json["function"].is_object() { &json["function"]["span"] } else { &json["span"] };
    let line = |at: &Value| usize::try_from(at["line"].as_u64().unwrap_or(1)).unwrap_or(1);
    let (first, last) = (line(&span["start"]), line(&span["end"]));
    let function = text(&json["function"]["function_name"]).unwrap_or_default();
    let body: Vec<&str> = source.lines().skip(first - 1).take(last + 1 - first).collect();
    let inside = line(&json["span"]["start"]).saturating_sub(first);
    let column = json["span"]["start"]["column"].as_u64().unwrap_or(0);
    let change = name.splitn(4, ':').last().unwrap_or(&name).trim();
    let key = format!("{file} {:016x} +{inside}:{column} {change}", fingerprint(&body.join("\n")));
    let spot = spot(json, &source);
    Ok(Mutant { file, function, name, key, spot })
}

/// The change of a mutant; `None` if its function cannot select a mutant at run time.
fn spot(json: &Value, source: &str) -> Option<Spot> {
    let range = |span: &Value| Some(offset(source, &span["start"])?..offset(source, &span["end"])?);
    let function = range(&json["function"]["span"])?;
    let text = &source[function.clone()];
    let signature = &text[..choice::body(text)?];
    let spot = Spot {
        function,
        place: range(&json["span"])?,
        replacement: json["replacement"].as_str()?.to_string(),
    };
    choice::can_choose(signature, json["function"]["return_type"].as_str()?).then_some(spot)
}

/// The byte at a line and a column, which are counted from 1 and in characters.
fn offset(source: &str, at: &Value) -> Option<usize> {
    let number = |name: &str| usize::try_from(at[name].as_u64()?).ok()?.checked_sub(1);
    let before: usize = source.split_inclusive('\n').take(number("line")?).map(str::len).sum();
    let inside: usize = source[before..].chars().take(number("column")?).map(char::len_utf8).sum();
    Some(before + inside)
}

/// FNV-1a: the same on every machine and in every release, which the standard hasher does not promise.
pub(super) fn fingerprint(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
impl Mutant {
    pub(super) fn sample(file: &str, function: &str, at: usize) -> Self {
        let name = format!("{file}:{at}:1: replace {function} -> bool with true");
        Self {
            file: file.to_string(),
            function: function.to_string(),
            key: format!("key of {name}"),
            name,
            spot: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn list(first_line: usize) -> String {
        let at = |line: usize| json!({"start": {"line": line, "column": 5}, "end": {"line": line + 2, "column": 1}});
        json!([{
            "name": format!("src/a.rs:{}:5: replace f -> bool with true", first_line + 1),
            "file": "src/a.rs",
            "function": {"function_name": "f", "span": at(first_line)},
            "span": at(first_line + 1),
        }])
        .to_string()
    }

    #[test]
    fn a_key_follows_its_function_and_changes_with_it() {
        let folder = std::env::temp_dir().join(format!("outlast-xtask-listed-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("src")).unwrap();
        let key = |source: &str, first_line| {
            std::fs::write(folder.join("src/a.rs"), source).unwrap();
            read(&list(first_line), &folder).unwrap().remove(0).key
        };
        let there = key("fn f() -> bool {\n    g()\n}\n", 1);
        let moved = key("// New.\n\nfn f() -> bool {\n    g()\n}\n", 3);
        let changed = key("fn f() -> bool {\n    h()\n}\n", 1);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(there, moved);
        assert_ne!(there, changed);
        assert!(there.ends_with("+1:5 replace f -> bool with true"), "{there}");
    }

    #[test]
    fn places_are_counted_in_characters() {
        let source = "// ü\nfn ä() -> bool { \"ö\" == \"u\" }\n";
        let at = |line: usize, from: usize, to: usize| json!({"start": {"line": line, "column": from}, "end": {"line": line, "column": to}});
        let mutant = |return_type: &str| {
            json!({
                "function": {"span": at(2, 1, 30), "return_type": return_type},
                "span": at(2, 22, 24),
                "replacement": "!=",
            })
        };
        let found = spot(&mutant("-> bool"), source).unwrap();
        assert_eq!((&source[found.place], &source[found.function]), ("==", source.lines().nth(1).unwrap()));
        assert!(spot(&mutant("-> impl Sized"), source).is_none());
        assert!(spot(&json!({"span": at(1, 1, 2), "replacement": ""}), source).is_none());
    }

    #[test]
    fn an_invalid_list_is_refused() {
        for json in ["", "{}", "[{\"name\": \"only\"}]"] {
            assert!(read(json, Path::new(".")).is_err(), "{json}");
        }
    }
}
