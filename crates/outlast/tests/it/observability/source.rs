//! The metrics, spans and log targets in the source text of the runtime and the stores. The macros of `metrics` and `tracing` are
//! read as text, so a metric or log line of a rare failure is found like any other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The crates that emit metrics or logs.
const CRATES: [&str; 10] = [
    "cosmos",
    "engine",
    "memory",
    "otel",
    "postgres",
    "provider",
    "provider-kit",
    "runtime",
    "server",
    "sqlite",
];

/// The folder of the workspace.
pub(super) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A source file without its tests.
pub(super) struct File {
    pub(super) path: String,
    pub(super) text: String,
}

pub(super) fn files() -> Vec<File> {
    let mut files = Vec::new();
    for name in CRATES {
        collect(&workspace().join("crates").join(name).join("src"), &mut files);
    }
    assert!(files.len() > 100, "the sources were found");
    files
}

fn collect(folder: &Path, files: &mut Vec<File>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let shown = path.display().to_string();
        if path.is_dir() {
            collect(&path, files);
        } else if shown.ends_with(".rs") && !shown.ends_with("tests.rs") && !shown.ends_with("captured.rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap().to_string();
            files.push(File { path: shown, text });
        }
    }
}

/// The arguments of each call of a macro, with the position of the call.
pub(super) fn calls<'a>(text: &'a str, name: &str) -> Vec<(usize, Vec<&'a str>)> {
    let opening = format!("{name}!(");
    let begins = text.match_indices(&opening).filter(|(at, _)| {
        let before = text[..*at].chars().next_back();
        !before.is_some_and(|before| before.is_alphanumeric() || before == '_' || before == '$')
    });
    begins.map(|(at, _)| (at, arguments(&text[at + opening.len()..]))).collect()
}

fn arguments(text: &str) -> Vec<&str> {
    let (mut depth, mut in_string, mut is_escaped, mut begin) = (1, false, false, 0);
    let mut found = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b',' if depth == 1 => {
                found.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
        if depth == 0 {
            found.push(text[begin..at].trim());
            break;
        }
    }
    found.retain(|argument| !argument.is_empty());
    found
}

/// A literal without its quotes.
fn literal(argument: &str) -> Option<&str> {
    argument.strip_prefix('"')?.strip_suffix('"')
}

/// The literals in a text that are names of metrics, with their positions.
fn names(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for prefix in ["\"duroxide_", "\"outlast_", "\"provider."] {
        for (at, _) in text.match_indices(prefix) {
            let name = text[at + 1..].split('"').next().unwrap();
            found.push((at, name.to_string()));
        }
    }
    found
}

/// The value of a string constant.
fn constant(text: &str, name: &str) -> Option<String> {
    let declared = format!("const {name}: &str = \"");
    Some(text.split_once(&declared)?.1.split('"').next()?.to_string())
}

/// Kind and labels of a metric.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) kind: String,
    pub(super) labels: BTreeSet<String>,
}

/// Every metric that is emitted by a function that other code calls.
pub(super) fn metrics(files: &[File]) -> BTreeMap<String, Shape> {
    let mut found: BTreeMap<String, Shape> = BTreeMap::new();
    for file in files {
        for kind in ["counter", "gauge", "histogram"] {
            for (at, arguments) in calls(&file.text, kind) {
                if !is_called(files, file, at) {
                    continue;
                }
                let labels = arguments[1..].iter().filter_map(|argument| argument.split_once(" => "));
                let labels: BTreeSet<String> =
                    labels.filter_map(|(label, _)| literal(label.trim())).map(str::to_string).collect();
                for name in named(&file.text, at, arguments[0]) {
                    let shape = found.entry(name.clone()).or_default();
                    assert!(shape.kind.is_empty() || shape.kind == kind, "{name} is two kinds of metric");
                    shape.kind = kind.to_string();
                    shape.labels.extend(labels.iter().cloned());
                }
            }
        }
    }
    found
}

/// The possible names of a metric, from the first argument of its macro.
fn named(text: &str, at: usize, argument: &str) -> Vec<String> {
    if let Some(name) = literal(argument) {
        return vec![name.to_string()];
    }
    if let Some(name) = constant(text, argument) {
        return vec![name];
    }
    // A variable: its value is a literal of the same function, or of the file if it is a macro variable.
    let begin = if argument.starts_with('$') { 0 } else { function(text, at).0 };
    let end = if argument.starts_with('$') { text.len() } else { at };
    let body = &text[begin..end];
    let literals = names(body).into_iter().filter(|(at, _)| !body[..*at].trim_end().ends_with("!("));
    let found: Vec<String> = literals.map(|(_, name)| name).collect();
    assert!(!found.is_empty(), "what is `{argument}` in\n{body}");
    found
}

/// The start and the name of the function around a position.
fn function(text: &str, at: usize) -> (usize, &str) {
    let begin = text[..at].rfind("fn ").unwrap();
    (begin, text[begin + 3..].split(['(', '<']).next().unwrap())
}

/// Whether other code calls the function around a position. A metric in a function that is never called is not emitted.
fn is_called(files: &[File], file: &File, at: usize) -> bool {
    let (_, name) = function(&file.text, at);
    let called = [format!(".{name}("), format!(" {name}(")];
    files.iter().any(|other| {
        let declared = format!("fn {name}(");
        let text = other.text.replace(&declared, "");
        called.iter().any(|call| text.contains(call))
    })
}

/// Levels and fields of a log target or of a span.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Logged {
    pub(super) levels: BTreeSet<String>,
    pub(super) fields: BTreeSet<String>,
}

/// Log targets, and spans by `target name`.
pub(super) fn records(files: &[File]) -> (BTreeMap<String, Logged>, BTreeMap<String, Logged>) {
    let (mut targets, mut spans) = (BTreeMap::<String, Logged>::new(), BTreeMap::<String, Logged>::new());
    for file in files {
        let levels = ["error", "warn", "info", "debug", "trace"].map(|level| (level, level));
        // Log macros of this workspace, with all levels that user code can select.
        let chosen = [("$macro", "all"), ("$level", "all"), ("debug_span", "debug")];
        for (name, level) in levels.into_iter().chain(chosen) {
            let qualified = calls(&file.text, &format!("tracing::{name}"));
            let imported = match file.text.contains(&format!("use tracing::{name};")) {
                true => calls(&file.text, name),
                false => Vec::new(),
            };
            for (_, arguments) in qualified.into_iter().chain(imported) {
                let target = arguments[0].strip_prefix("target: ");
                let target = target.unwrap_or_else(|| panic!("no target in {}: {arguments:?}", file.path));
                let target = literal(target).map(str::to_string);
                let target = target.or_else(|| constant(&file.text, arguments[0].strip_prefix("target: ")?));
                let target = target.unwrap_or_else(|| panic!("what target in {}: {arguments:?}", file.path));
                let is_span = name == "debug_span";
                let (all, key, fields) = match is_span {
                    true => {
                        let name = literal(arguments[1]).unwrap_or("OPERATION");
                        (&mut spans, format!("{target} {name}"), &arguments[2..])
                    }
                    false => (&mut targets, target, &arguments[1..]),
                };
                let logged = all.entry(key).or_default();
                logged.levels.insert(level.to_string());
                // The arguments after the message are no fields.
                let fields = fields.iter().take_while(|field| !field.starts_with('"'));
                logged.fields.extend(fields.filter_map(|field| field_name(field)));
            }
        }
    }
    (targets, spans)
}

/// The name of a field: `name = value`, `%name`, `?name` or `name`.
fn field_name(field: &str) -> Option<String> {
    let name = field.split('=').next()?.trim().trim_start_matches(['%', '?']);
    let is_name = name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_');
    is_name.then(|| name.to_string())
}

/// Name and group of every operation of a store, as `operations!` declares them.
pub(super) fn operations(files: &[File]) -> BTreeMap<String, String> {
    let file = files.iter().find(|file| file.path.ends_with("metrics/operation.rs")).unwrap();
    let rows = file.text.split_once("operations! {").unwrap().1.split_once("\n}").unwrap().0;
    let rows = rows.lines().map(str::trim).filter(|row| !row.is_empty());
    let read = |row: &str| {
        let mut quoted = row.split('"').skip(1).step_by(2).map(str::to_string);
        (quoted.next().unwrap(), quoted.next().unwrap())
    };
    rows.map(read).collect()
}

#[test]
fn metrics_and_log_macros_are_parsed_with_their_arguments() {
    let text = r#"
        fn record(&self) { counter!("duroxide_a_total", "one" => x, "two" => f(1, 2)).increment(1); }
        fn told() { tracing::warn!(target: "t", %error, count = 1, "message, with a comma {}", other); }
    "#;
    let (_, arguments) = &calls(text, "counter")[0];
    assert_eq!(arguments, &[r#""duroxide_a_total""#, r#""one" => x"#, r#""two" => f(1, 2)"#]);
    let defined = File { path: "a.rs".into(), text: text.to_string() };
    assert!(metrics(&[defined]).is_empty(), "nothing calls `record`");
    let called = File { path: "a.rs".into(), text: format!("{text} fn other() {{ self.record(); }}") };
    let found = metrics(std::slice::from_ref(&called));
    let labels = ["one", "two"].map(str::to_string).into();
    assert_eq!(found["duroxide_a_total"], Shape { kind: "counter".into(), labels });
    let (targets, _) = records(&[called]);
    assert_eq!(targets["t"].fields, ["count", "error"].map(str::to_string).into());
}
