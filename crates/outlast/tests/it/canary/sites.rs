//! Every place in the sources that logs.

use std::path::{Path, PathBuf};

/// Those that the process cannot be brought to. Each names ids and versions only.
pub(super) const UNREACHED: &[&str] = &[
    "incompatible version: the instance was started under a contract that this runtime does not replay",
    "messages for an instance without history or start are dropped",
    "not an activity; it stays in the worker queue",
    // An operation and an instance; the message of a panic goes to the hook of the process.
    "the store panicked; the transaction is undone and the connection is replaced",
    "a turn waits so long for the store that its lease must be renewed: no orchestration code runs",
    "the wait timed out, and the instance does not exist: was it started under this id, and does a runtime have its orchestration?",
    // The class of an error.
    "the gauges keep their values: the store returned an error",
];

/// Where it is, and the longest part of its text without values in it. Texts that are values altogether are left out: they
/// are the author's, or those of warnings, which are looked for by name.
pub(super) fn of(libraries: &[&str]) -> Vec<(String, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for library in libraries {
        collect(&crates.join(library).join("src"), &mut files);
    }
    let mut sites = Vec::new();
    for file in files {
        let source = std::fs::read_to_string(&file).unwrap();
        let shipped = source.split("#[cfg(test)]\nmod tests").next().unwrap();
        for level in ["error!(", "warn!(", "info!(", "debug!(", "trace!("] {
            for (at, _) in shipped.match_indices(level) {
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
