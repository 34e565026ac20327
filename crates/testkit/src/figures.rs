//! The figures of a run, as `cargo xtask scoreboard add` reads them.

use serde_json::Value;
use std::path::Path;

/// Writes figures to a JSON file, indented, with a line break at the end.
///
/// # Errors
///
/// The path and the reason, if the file cannot be written.
pub fn write(path: &Path, figures: &Value) -> Result<(), String> {
    let text = format!("{figures:#}\n");
    std::fs::write(path, text).map_err(|error| format!("{} cannot be written: {error}", path.display()))
}
