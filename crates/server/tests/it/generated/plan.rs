//! The requests of an operation, made from the OpenAPI document: one value is changed at a time, all others are valid.

use super::values::{FLAGS, MEDIA, NUMBERS, TEXTS, bodies, json_values, keys, raw};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// An operation of the document.
pub(super) struct Operation<'a> {
    pub(super) method: String,
    pub(super) path: &'a str,
    pub(super) described: &'a Value,
    document: &'a Value,
}

pub(super) fn operations(document: &Value) -> Vec<Operation<'_>> {
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, described) in methods.as_object().unwrap() {
            all.push(Operation { method: method.to_uppercase(), path, described, document });
        }
    }
    all
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// One parameter with its value as it is sent; `None` leaves it out.
type Given = Vec<(String, String, Option<String>)>;

impl Operation<'_> {
    fn parameters(&self) -> &[Value] {
        self.described["parameters"].as_array().map_or(&[], Vec::as_slice)
    }

    /// A valid value of a parameter. The instance `done` has ended, so that no wait takes its time.
    fn valid(&self, parameter: &Value) -> Option<String> {
        let is_required = parameter["required"] == true;
        match parameter["name"].as_str().unwrap() {
            "id" if self.path.ends_with("/wait") || self.method == "GET" => Some("done".to_string()),
            "id" => Some("run".to_string()),
            "timeout" => Some("0".to_string()),
            "execution" | "event" | "n" | "op" => Some("1".to_string()),
            "reason" => Some("a%20test".to_string()),
            _ => is_required.then(|| "q".to_string()),
        }
    }

    fn body_schema(&self) -> Option<(&str, &Value)> {
        let content = self.described["requestBody"]["content"].as_object()?;
        let (media, described) = content.iter().next()?;
        Some((media, self.resolved(&described["schema"])))
    }

    fn resolved<'b>(&'b self, schema: &'b Value) -> &'b Value {
        match schema["$ref"].as_str() {
            Some(path) => self.document.pointer(&path[1..]).unwrap(),
            None => schema,
        }
    }

    /// A valid body.
    fn valid_body(&self) -> Option<Map<String, Value>> {
        let (media, schema) = self.body_schema()?;
        if media.contains("cloudevents") {
            let event = json!({ "specversion": "1.0", "id": "1", "source": "/test", "type": "approval", "subject": "run", "data": {} });
            return event.as_object().cloned();
        }
        let mut body = Map::new();
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let value = match name.as_str() {
                "reason" => json!("a test"),
                "orchestration" => json!("order"),
                "instance" => json!("new"),
                "name" => json!("note"),
                "action" => json!("pause"),
                "filter" => json!({ "prefix": "run" }),
                "dry_run" => json!(true),
                "keep_last" | "to_event" => json!(1),
                "new_id" => json!("copy"),
                _ if self.is_required(name) => panic!("no valid value for {name}: {schema}"),
                _ => continue,
            };
            body.insert(name.clone(), value);
        }
        Some(body)
    }

    fn is_required(&self, name: &str) -> bool {
        let Some((_, schema)) = self.body_schema() else { return false };
        schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name))
    }

    /// All requests of the operation.
    pub(super) fn requests(&self) -> Vec<Request> {
        let valid: Given = self
            .parameters()
            .iter()
            .map(|parameter| {
                let text = |field: &str| parameter[field].as_str().unwrap().to_string();
                (text("in"), text("name"), self.valid(parameter))
            })
            .collect();
        let body = self.valid_body();
        let media = self.body_schema().map(|(media, _)| media.to_string());
        let base = self.request(&valid, media.as_deref(), body.clone().map(|body| json!(body)));
        let mut all = vec![base.clone()];
        for (index, parameter) in self.parameters().iter().enumerate() {
            for value in hostile(parameter) {
                // The path of another operation, which wins.
                if self.path.ends_with("/{id}") && value.as_deref() == Some("count") {
                    continue;
                }
                let mut changed = valid.clone();
                changed[index].2 = value;
                all.push(self.request(&changed, media.as_deref(), body.clone().map(|body| json!(body))));
            }
        }
        // The same parameter twice, one that no operation has, and the id as a parameter.
        for more in [
            "payloads=true&payloads=false",
            "no_such=1",
            "limit=1&limit=2",
            "id=run",
            "id=%FF",
            "id=",
            "=",
            "&&&",
        ] {
            let mark = if base.path.contains('?') { '&' } else { '?' };
            all.push(Request { path: format!("{}{mark}{more}", base.path), ..base.clone() });
        }
        if let Some(body) = body {
            all.extend(self.changed_bodies(&base, &body));
            all.extend(bodies().into_iter().map(|body| Request { body, ..base.clone() }));
            all.extend(MEDIA.iter().map(|media| base.clone().with_media(*media)));
        }
        for method in ["PUT", "PATCH", "OPTIONS", "TRACE", "HEAD", "BREW"] {
            all.push(Request { method: method.to_string(), ..base.clone() });
        }
        all
    }

    fn request(&self, given: &Given, media: Option<&str>, body: Option<Value>) -> Request {
        let mut path = self.path.to_string();
        let (mut params, mut headers) = (Vec::new(), Vec::new());
        for (place, name, value) in given {
            let Some(value) = value else {
                path = path.replace(&format!("{{{name}}}"), "");
                continue;
            };
            match place.as_str() {
                "path" => path = path.replace(&format!("{{{name}}}"), value),
                "query" => params.push(format!("{name}={value}")),
                _ => headers.push((name.clone(), value.clone())),
            }
        }
        if !params.is_empty() {
            path = format!("{path}?{}", params.join("&"));
        }
        headers.extend(media.map(|media| ("content-type".to_string(), media.to_string())));
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        Request { method: self.method.clone(), path, headers, body }
    }

    /// Bodies with one field changed, missing or added, also in the objects inside.
    fn changed_bodies(&self, base: &Request, body: &Map<String, Value>) -> Vec<Request> {
        let (_, schema) = self.body_schema().unwrap();
        let mut changed: Vec<Value> = Vec::new();
        let mut with = |field: &str, value: Option<Value>| {
            let mut body = body.clone();
            match value {
                Some(value) => body.insert(field.to_string(), value),
                None => body.remove(field),
            };
            changed.push(body.into());
        };
        for (field, described) in schema["properties"].as_object().into_iter().flatten() {
            with(field, None);
            for value in json_values() {
                with(field, Some(value));
            }
            let inner = described["oneOf"].as_array().and_then(|all| all.last()).unwrap_or(described);
            for inner in
                self.resolved(inner)["properties"].as_object().into_iter().flatten().map(|(name, _)| name)
            {
                for value in json_values() {
                    with(field, Some(json!({ inner: value })));
                }
            }
            for choice in self.resolved(inner)["enum"].as_array().into_iter().flatten() {
                with(field, Some(choice.clone()));
            }
        }
        with("no_such_field", Some(json!(1)));
        with("", Some(json!({})));
        changed
            .into_iter()
            .map(|body| Request { body: body.to_string().into_bytes(), ..base.clone() })
            .collect()
    }
}

impl Request {
    fn with_media(mut self, media: Option<&str>) -> Self {
        self.headers.retain(|(name, _)| name != "content-type");
        self.headers.extend(media.map(|media| ("content-type".to_string(), media.to_string())));
        self
    }
}

/// Values for a parameter, as they are sent; `None` leaves it out.
fn hostile(parameter: &Value) -> Vec<Option<String>> {
    let schema = &parameter["schema"];
    let pool: &[&str] = match schema["type"].as_str() {
        Some("integer") => NUMBERS,
        Some("boolean") => FLAGS,
        _ => TEXTS,
    };
    if parameter["in"] == "header" {
        return keys().into_iter().map(Some).collect();
    }
    let is_wait = parameter["name"] == "timeout";
    // The pause of an orchestration takes a second.
    let step = if parameter["name"] == "orchestration" { 6 } else { 1 };
    let texts = pool.iter().step_by(step).filter(|text| !(is_wait && **text == "60"));
    let mut all: Vec<Option<String>> = texts.map(|text| Some(encoded(text))).collect();
    all.extend(raw().into_iter().map(Some));
    all.push(None);
    all
}
