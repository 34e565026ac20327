//! Every log call in the sources.

use std::path::{Path, PathBuf};

/// Log calls that the test process does not reach. Each logs only ids and versions.
pub(super) const UNREACHED: &[&str] = &[
    "incompatible version: the instance was started under a contract that this runtime does not replay",
    "messages for an instance without history or start are dropped",
    "not an activity; it stays in the worker queue",
    // Logs an operation and an instance; the message of the panic goes to the panic hook of the process.
    "the store panicked; the transaction is undone and the connection is replaced",
    "a turn waits so long for the store that its lease must be renewed: no orchestration code runs",
];

/// The position of each log call, and the longest part of its message between values. Messages that consist of values only are
/// skipped: they come from user code, or are warnings that the test searches by name.
pub(super) fn of(libraries: &[&str]) -> Vec<(String, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for library in libraries {
        collect(&crates.join(library).join("src"), &mut files);
    }
    let mut sites = Vec::new();
    for file in files {
        let source = std::fs::read_to_string(&file).unwrap();
        let shipped = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
        for level in ["error!(", "warn!(", "info!(", "debug!(", "trace!("] {
            let calls = shipped.match_indices(level).filter(|(at, _)| !shipped[..*at].ends_with("compile_"));
            for (at, _) in calls {
                let line = shipped[..at].lines().count();
                let fixed = literals(call(&shipped[at + level.len()..])).last().map(longest);
                let place = format!("{}:{line}", file.file_name().unwrap().to_string_lossy());
                sites.extend(fixed.filter(|text| !text.is_empty()).map(|text| (place, text)));
            }
        }
    }
    sites
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => collect(&path, files),
            false if path.extension().is_some_and(|extension| extension == "rs") => files.push(path),
            false => {}
        }
    }
}

/// The arguments of a macro, up to its closing parenthesis.
fn call(rest: &str) -> &str {
    let (mut depth, mut quoted, mut escaped) = (1, false, false);
    for (at, char) in rest.char_indices() {
        match char {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &rest[..at];
        }
    }
    rest
}

fn literals(arguments: &str) -> impl Iterator<Item = &str> {
    arguments.split('"').skip(1).step_by(2)
}

/// The longest part between values in braces.
fn longest(text: &str) -> String {
    let parts = text.split('{').map(|part| part.split_once('}').map_or(part, |(_, after)| after));
    parts.max_by_key(|part| part.len()).unwrap_or_default().trim().to_string()
}
