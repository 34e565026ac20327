//! Checks a JSON value against a schema of the OpenAPI document. It knows the keywords that the document uses, and panics at others, so
//! that no rule is skipped. Objects are closed: a field that the schema does not name is an error.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Keywords without a rule.
const WORDS: &[&str] = &["description", "title", "format", "example", "examples", "default"];

pub(super) struct Checker<'a> {
    /// The whole document, for references.
    pub(super) document: &'a Value,
}

type Checked = Result<(), String>;

impl Checker<'_> {
    /// An error names the place of the value and the rule.
    pub(super) fn check(&self, schema: &Value, value: &Value) -> Checked {
        self.at("$", schema, value)
    }

    fn at(&self, place: &str, schema: &Value, value: &Value) -> Checked {
        let Some(rules) = schema.as_object() else { return Err(format!("{place}: no schema: {schema}")) };
        let mut fields = BTreeMap::new();
        let is_object = self.collect(schema, &mut fields);
        for (keyword, rule) in rules {
            match keyword.as_str() {
                "$ref" => self.at(place, self.target(rule), value)?,
                "type" => of_type(place, rule, value)?,
                "enum" => {
                    let known = rule.as_array().is_some_and(|known| known.contains(value));
                    known.then_some(()).ok_or_else(|| format!("{place}: {value} is not one of {rule}"))?;
                }
                "minimum" => bound(place, value, rule, |value, rule| value >= rule)?,
                "maximum" => bound(place, value, rule, |value, rule| value <= rule)?,
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.at(&format!("{place}[{index}]"), rule, item)?;
                    }
                }
                "oneOf" | "anyOf" => self.one_of(place, rule, value)?,
                // The fields are checked below, those of all parts together.
                "allOf" | "properties" | "required" => {}
                "propertyNames" | "additionalProperties" => {}
                word if WORDS.contains(&word) => {}
                other => panic!("the checker does not know the keyword {other} of {schema}"),
            }
        }
        match (is_object, value.as_object()) {
            (true, Some(value)) if !rules.contains_key("$ref") => self.closed(place, schema, &fields, value),
            (true, None) if rules.contains_key("allOf") => Err(format!("{place}: {value} is no object")),
            _ => Ok(()),
        }
    }

    fn target(&self, reference: &Value) -> &Value {
        let path = reference.as_str().and_then(|path| path.strip_prefix('#')).unwrap();
        self.document.pointer(path).unwrap_or_else(|| panic!("the document has no {path}"))
    }

    /// The fields of a schema and of its parts, and whether it has any.
    fn collect<'a>(&'a self, schema: &'a Value, fields: &mut BTreeMap<&'a str, (&'a Value, bool)>) -> bool {
        if let Some(reference) = schema.get("$ref") {
            return self.collect(self.target(reference), fields);
        }
        let mut is_object = false;
        for part in schema["allOf"].as_array().into_iter().flatten() {
            is_object |= self.collect(part, fields);
        }
        if let Some(properties) = schema["properties"].as_object() {
            is_object = true;
            let required = schema["required"].as_array();
            for (name, rule) in properties {
                let is_required =
                    required.is_some_and(|required| required.iter().any(|one| one == name.as_str()));
                fields.insert(name, (rule, is_required));
            }
        }
        is_object
    }

    fn closed(
        &self,
        place: &str,
        schema: &Value,
        fields: &BTreeMap<&str, (&Value, bool)>,
        value: &Map<String, Value>,
    ) -> Checked {
        for (name, (rule, is_required)) in fields {
            match value.get(*name) {
                Some(value) => self.at(&format!("{place}.{name}"), rule, value)?,
                None if *is_required => return Err(format!("{place}: the field {name} is missing")),
                None => {}
            }
        }
        let is_open = schema.get("additionalProperties").is_some();
        match value.keys().find(|name| !fields.contains_key(name.as_str())) {
            Some(name) if !is_open => Err(format!("{place}: the field {name} is not documented")),
            _ => Ok(()),
        }
    }

    fn one_of(&self, place: &str, schemas: &Value, value: &Value) -> Checked {
        let all = schemas.as_array().into_iter().flatten();
        let errors: Vec<String> = all.map_while(|schema| self.at(place, schema, value).err()).collect();
        match errors.len() == schemas.as_array().map_or(0, Vec::len) {
            true => Err(format!("{place}: no schema fits: {}", errors.join("; "))),
            false => Ok(()),
        }
    }
}

fn of_type(place: &str, rule: &Value, value: &Value) -> Checked {
    let is_a = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the checker does not know the type {other}"),
    };
    let fits = match rule {
        Value::String(name) => is_a(name),
        names => names.as_array().is_some_and(|names| names.iter().any(|name| is_a(name.as_str().unwrap()))),
    };
    fits.then_some(()).ok_or_else(|| format!("{place}: {value} is not of type {rule}"))
}

fn bound(place: &str, value: &Value, rule: &Value, holds: impl Fn(f64, f64) -> bool) -> Checked {
    match (value.as_f64(), rule.as_f64()) {
        (Some(number), Some(bound)) if !holds(number, bound) => {
            Err(format!("{place}: {value} is beyond {rule}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn checker_reports_each_kind_of_difference() {
        let document = json!({ "a": {
            "type": "object", "required": ["id"],
            "properties": { "id": { "type": "integer", "minimum": 0 }, "name": { "type": ["string", "null"] } },
        }});
        let one = json!({ "$ref": "#/a" });
        let both = json!({ "allOf": [one, { "type": "object", "required": ["depth"], "properties": { "depth": { "type": "integer" } } }] });
        let list = json!({ "type": "array", "items": one });
        let either = json!({ "oneOf": [{ "type": "null" }, one] });
        let checker = Checker { document: &document };
        for (schema, value, problem) in [
            (&one, json!({ "id": 1 }), ""),
            (&one, json!({ "id": 1, "name": null }), ""),
            (&one, json!({ "id": -1 }), "$.id: -1 is beyond 0"),
            (&one, json!({ "id": "1" }), "$.id: \"1\" is not of type"),
            (&one, json!({ "name": "a" }), "$: the field id is missing"),
            (&one, json!({ "id": 1, "more": 2 }), "$: the field more is not documented"),
            (&one, json!([]), "$: [] is not of type"),
            (&both, json!({ "id": 1, "depth": 2 }), ""),
            (&both, json!({ "id": 1 }), "$: the field depth is missing"),
            (&both, json!({ "id": 1, "depth": 2, "x": 3 }), "$: the field x is not documented"),
            (&list, json!([{ "id": 1 }, { "id": null }]), "$[1].id: null is not of type"),
            (&either, Value::Null, ""),
            (&either, json!({ "id": 1 }), ""),
            (&either, json!(7), "no schema fits"),
        ] {
            let found = checker.check(schema, &value).err().unwrap_or_default();
            assert_eq!(found.is_empty(), problem.is_empty(), "{value}: {found}");
            assert!(found.contains(problem), "{value}: {found}");
        }
    }
}
