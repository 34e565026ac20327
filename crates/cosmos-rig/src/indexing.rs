//! Indexing policies: the emulator stores them and ignores them. The rig refuses what Azure refuses.

use serde_json::Value;

/// The paths of a policy.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    included: Vec<String>,
    excluded: Vec<String>,
    /// Paths of each composite index, and whether the order is descending.
    composites: Vec<Vec<(String, bool)>>,
}

impl Default for Policy {
    /// Azure indexes all properties of a container that is created without a policy.
    fn default() -> Self {
        Self { included: vec!["/*".into()], excluded: vec!["/\"_etag\"/?".into()], composites: Vec::new() }
    }
}

impl Policy {
    /// Reads a policy, or returns the reason why Azure refuses it.
    pub(crate) fn read(json: &Value) -> Result<Self, String> {
        if json
            .get("indexingMode")
            .and_then(Value::as_str)
            .is_some_and(|mode| mode.eq_ignore_ascii_case("none"))
        {
            return Ok(Self { included: Vec::new(), excluded: vec!["/*".into()], composites: Vec::new() });
        }
        let paths = |name: &str| -> Result<Vec<String>, String> {
            let list = json.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            list.iter().map(|entry| entry_path(entry).and_then(scalar_path)).collect()
        };
        let (mut included, excluded) = (paths("includedPaths")?, paths("excludedPaths")?);
        if included.is_empty() && excluded.is_empty() {
            included.push("/*".into());
        }
        if !included.iter().chain(&excluded).any(|path| path == "/*") {
            return Err(
                "The special mandatory indexing path \"/\" is not provided in any of the path type sets. \
                        Please provide this path in one of the sets."
                    .into(),
            );
        }
        let lists = json.get("compositeIndexes").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let composites = lists.iter().map(composite).collect::<Result<_, _>>()?;
        Ok(Self { included, excluded, composites })
    }

    /// Whether a property is indexed. The most precise path decides. `id` and `_ts` are always indexed.
    pub(crate) fn is_indexed(&self, property: &str) -> bool {
        if matches!(property, "/id" | "/_ts") {
            return true;
        }
        let best = |paths: &[String]| paths.iter().filter_map(|path| precision(path, property)).max();
        best(&self.included) > best(&self.excluded)
    }

    /// The reason why Azure refuses an order, if it does.
    pub(crate) fn refuses_order(&self, order: &[(String, bool)]) -> Option<String> {
        match order {
            [] => None,
            [(path, _)] if self.is_indexed(path) => None,
            [(path, _)] => Some(format!(
                "The index path corresponding to the specified order-by item is excluded: {path}"
            )),
            _ => {
                let reversed: Vec<_> =
                    order.iter().map(|(path, descending)| (path.clone(), !descending)).collect();
                let served = self.composites.iter().any(|index| index == order || *index == reversed);
                (!served).then(|| {
                    "The order by query does not have a corresponding composite index that it can be served from."
                        .to_string()
                })
            }
        }
    }
}

fn entry_path(entry: &Value) -> Result<&str, String> {
    entry.get("path").and_then(Value::as_str).ok_or_else(|| "An indexing path is missing.".to_string())
}

fn scalar_path(path: &str) -> Result<String, String> {
    let valid = path.starts_with('/') && (path.ends_with("/?") || path.ends_with("/*"));
    let refusal = "could not be accepted. Ensure that the path is a valid path: it starts with '/' and ends with '/?' or '/*'.";
    if valid { Ok(path.to_string()) } else { Err(format!("The indexing path '{path}' {refusal}")) }
}

fn composite(index: &Value) -> Result<Vec<(String, bool)>, String> {
    let entries = index.as_array().map_or(&[][..], Vec::as_slice);
    if entries.len() < 2 {
        return Err("A composite index has at least two paths.".into());
    }
    let read = |entry: &Value| {
        let path = entry_path(entry)?;
        if !path.starts_with('/') || path.ends_with("/?") || path.ends_with("/*") {
            return Err(format!(
                "The composite path '{path}' is not valid: it names a property, without '/?' or '/*'."
            ));
        }
        let descending = entry.get("order").and_then(Value::as_str) == Some("descending");
        Ok((path.to_string(), descending))
    };
    entries.iter().map(read).collect()
}

/// How precisely an indexing path names a property: its segments, and whether it names exactly this property.
fn precision(path: &str, property: &str) -> Option<(usize, bool)> {
    let plain = path.replace('"', "");
    let segments = plain.matches('/').count() - 1;
    match (plain.strip_suffix("/?"), plain.strip_suffix("/*")) {
        (Some(exact), _) => (exact == property).then_some((segments, true)),
        (_, Some(root)) => {
            let inside =
                property.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            inside.then_some((segments, false))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy() -> Policy {
        let composite = |a: &str, b: &str, order: &str| json!([{ "path": a }, { "path": b, "order": order }]);
        Policy::read(&json!({
            "includedPaths": [{ "path": "/t/?" }, { "path": "/at/?" }, { "path": "/deep/*" }],
            "excludedPaths": [{ "path": "/*" }, { "path": "/deep/not/?" }],
            "compositeIndexes": [composite("/t", "/at", "ascending"), composite("/t", "/ct", "descending")],
        }))
        .unwrap()
    }

    #[test]
    fn the_most_precise_path_decides() {
        let indexed = |path: &str| policy().is_indexed(path);
        for path in ["/t", "/at", "/deep/a", "/deep/a/b", "/id", "/_ts"] {
            assert!(indexed(path), "{path}");
        }
        for path in ["/d", "/t/x", "/deep/not", "/deeper", "/instanceId"] {
            assert!(!indexed(path), "{path}");
        }
        assert!(Policy::default().is_indexed("/anything") && !Policy::default().is_indexed("/_etag"));
    }

    #[test]
    fn orders_need_their_index() {
        let refused = |order: &[(&str, bool)]| {
            let order: Vec<_> =
                order.iter().map(|(path, descending)| (path.to_string(), *descending)).collect();
            policy().refuses_order(&order).is_some()
        };
        assert!(!refused(&[("/at", true)]) && !refused(&[("/t", false), ("/at", false)]));
        assert!(!refused(&[("/t", true), ("/at", true)]), "a composite index is read backwards too");
        assert!(!refused(&[("/t", true), ("/ct", false)]) && refused(&[("/t", false), ("/ct", false)]));
        assert!(refused(&[("/d", false)]) && refused(&[("/at", false), ("/t", false)]));
    }

    #[test]
    fn invalid_policies_are_refused() {
        let invalid = [
            json!({ "includedPaths": [{ "path": "nope" }], "excludedPaths": [{ "path": "/*" }] }),
            json!({ "includedPaths": [{ "path": "/t/?" }] }),
            json!({ "includedPaths": [{ "path": "/*" }], "compositeIndexes": [[{ "path": "/t" }]] }),
            json!({ "includedPaths": [{ "path": "/*" }], "compositeIndexes": [[{ "path": "/t/?" }, { "path": "/a" }]] }),
            json!({ "includedPaths": [{}], "excludedPaths": [{ "path": "/*" }] }),
        ];
        for json in invalid {
            assert!(Policy::read(&json).is_err(), "{json}");
        }
        assert!(Policy::read(&json!({})).is_ok());
    }
}
