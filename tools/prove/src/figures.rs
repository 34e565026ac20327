//! The sum of the figures of two chunks.

use serde_json::{Map, Number, Value};

pub(crate) type Figures = Map<String, Value>;

/// The way in which the figures of a chunk enter the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Merge {
    /// Counts are added.
    Add,
    /// The figures of a chunk include those of the chunks before it, and a repeated chunk has the same figures: a chunk that
    /// succeeds settles the failures before it.
    Replace,
}

/// Percentages, and the counts that they are computed from.
const PERCENT: [(&str, &str, &str); 1] = [("kills_in_commit_percent", "kills_in_commit", "kills")];

impl Merge {
    /// Enters the figures of a chunk into those of the chunks before it.
    pub(crate) fn enter(self, sum: &mut Figures, chunk: &Figures) {
        match self {
            Self::Replace => sum.clone_from(chunk),
            Self::Add => {
                add(sum, chunk);
                for (percent, part, whole) in PERCENT {
                    let count = |name: &str| sum.get(name).and_then(Value::as_u64);
                    if let (Some(part), Some(whole @ 1..), true) =
                        (count(part), count(whole), sum.contains_key(percent))
                    {
                        sum.insert(percent.to_string(), (part * 100 / whole).into());
                    }
                }
            }
        }
    }
}

/// Adds the figures of a chunk to the sum.
fn add(sum: &mut Figures, chunk: &Figures) {
    for (key, value) in chunk {
        match sum.get_mut(key) {
            None => drop(sum.insert(key.clone(), value.clone())),
            Some(old) => join(key, old, value),
        }
    }
}

/// Joins two values of one figure: maps and numbers are added, lists follow each other.
fn join(key: &str, old: &mut Value, new: &Value) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => add(old, new),
        (Value::Array(old), Value::Array(new)) => old.extend(new.iter().cloned()),
        (Value::Number(old), Value::Number(new)) => *old = joined(key, old, new),
        (Value::String(old), Value::String(new)) if old != new => *old = format!("{old}; {new}"),
        _ => {}
    }
}

/// The sum of two numbers. Of durations of one step and sizes of a corpus, it is the larger number; of seeds, the first.
fn joined(key: &str, old: &Number, new: &Number) -> Number {
    let is_largest = key.starts_with("worst_")
        || key.ends_with("milliseconds")
        || key.ends_with("milliseconds_to_drain")
        || key.ends_with("_corpus")
        || key == "bytes_of_a_message";
    let pick = |a: f64, b: f64| if is_largest { a.max(b) } else { a + b };
    match (old.as_u64(), new.as_u64()) {
        _ if key == "seed" => old.clone(),
        (Some(old), Some(new)) if is_largest => old.max(new).into(),
        (Some(old), Some(new)) => old.saturating_add(new).into(),
        _ => {
            let sum = pick(old.as_f64().unwrap_or_default(), new.as_f64().unwrap_or_default());
            Number::from_f64(sum).unwrap_or_else(|| old.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn merged(merge: Merge, chunks: &[Value]) -> Value {
        let mut sum = Figures::new();
        for chunk in chunks {
            merge.enter(&mut sum, chunk.as_object().unwrap());
        }
        Value::Object(sum)
    }

    #[test]
    fn counts_are_added_and_maps_and_lists_are_joined() {
        let one = json!({"seeds": 10, "hours": 0.5, "failing": [], "kinds": {"crash": 1}, "store": "sqlite"});
        let two = json!({"seeds": 5, "hours": 1.25, "failing": [7], "kinds": {"crash": 2, "cut": 3}, "store": "sqlite"});
        let sum = json!({"seeds": 15, "hours": 1.75, "failing": [7], "kinds": {"crash": 3, "cut": 3}, "store": "sqlite"});
        assert_eq!(merged(Merge::Add, &[one, two]), sum);
    }

    #[test]
    fn largest_numbers_percentages_and_seeds_are_not_added() {
        let one = json!({"seed": 1, "kills": 100, "kills_in_commit": 90, "kills_in_commit_percent": 90,
            "milliseconds_to_drain": 7, "a_corpus": 20});
        let two = json!({"seed": 2, "kills": 300, "kills_in_commit": 110, "kills_in_commit_percent": 36,
            "milliseconds_to_drain": 9, "a_corpus": 19});
        let sum = json!({"seed": 1, "kills": 400, "kills_in_commit": 200, "kills_in_commit_percent": 50,
            "milliseconds_to_drain": 9, "a_corpus": 20});
        assert_eq!(merged(Merge::Add, &[one, two]), sum);
    }

    #[test]
    fn figures_of_all_chunks_replace_those_before() {
        let chunks = [json!({"caught": 5, "gone": 1}), json!({"caught": 9})];
        assert_eq!(merged(Merge::Replace, &chunks), json!({"caught": 9}));
    }
}
