//! Our part of `cargo xtask bench compare`: one measurement per process, one line of JSON.

#[path = "../../../bench/peers/cases/mod.rs"]
mod cases;

pub(crate) use cases::main;

use crate::floor::{SOUND_1_PER_SECOND, SOUND_64_PER_SECOND, chain, run};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Runs a floor. `sound` is what it must reach for the comparison to mean something.
pub(crate) fn floor(mut args: impl Iterator<Item = String>) -> Result<Value, String> {
    let kind = args.next().unwrap_or_default();
    let (mut count, mut steps, mut per_transaction, mut dir) = (1_000, 10, 1, PathBuf::from("."));
    while let Some(option) = args.next() {
        let value = args.next().ok_or_else(|| format!("'{option}' needs a value"))?;
        let number = || value.parse::<usize>().map_err(|error| format!("'{option} {value}': {error}"));
        match option.as_str() {
            "--count" => count = number()?.max(1),
            "--steps" => steps = number()?.max(1),
            "--per-transaction" => per_transaction = number()?.max(1),
            "--dir" => dir = value.into(),
            _ => return Err(format!("unknown option '{option}'")),
        }
    }
    let (each, sound) = match (kind.as_str(), per_transaction) {
        ("hello", 64) => (run(&dir, count, 64), Some(SOUND_64_PER_SECOND)),
        ("hello", 1) => (run(&dir, count, 1), Some(SOUND_1_PER_SECOND)),
        ("hello", _) => (run(&dir, count, per_transaction), None),
        ("chain", _) => (chain(&dir, count, steps, per_transaction), None),
        _ => return Err(format!("unknown floor '{kind}'")),
    };
    let ms = each.as_secs_f64() * 1e3;
    // Under the names that the cases use, so that a row finds its floor by the name of its figure.
    Ok(json!({ "per_second": 1e3 / ms, "p50_ms": ms, "step_ms": ms, "sound": sound }))
}
