//! The OpenAPI document: paths from the list of routes, schemas from the types of requests and answers.

use crate::api::cloudevents::{self, STRUCTURED};
use crate::api::{dead_letters, held, operate, operations, reset, start};
use crate::operations::OperationView;
use crate::options::Options;
use crate::problem::{Code, ProblemBody};
use crate::routes::{Described, Param, Values};
use crate::view;
use axum::http::{Method, StatusCode};
use serde_json::{Map, Value, json};
use utoipa::OpenApi;

/// The schemas. A schema that an answer names must be listed.
#[derive(OpenApi)]
#[openapi(components(schemas(
    view::AuditPage,
    view::Counts,
    view::DeadLetterView,
    view::DeadLetters,
    view::Detail,
    view::EventPage,
    view::ExecutionDetail,
    view::Executions,
    view::HeldPage,
    view::Hold,
    view::InstancePage,
    view::Nodes,
    view::PausedOrchestrations,
    view::Pending,
    view::QueueMessages,
    view::Queues,
    view::Series,
    view::StateView,
    view::Stats,
    view::StoredEvents,
    view::System,
    view::Tree,
    view::Why,
    cloudevents::Structured,
    dead_letters::Settled,
    held::OrchestrationChanged,
    operate::Accepted,
    operate::CancelBody,
    operate::EventBody,
    operate::MessageBody,
    operate::PruneBody,
    operate::ReasonBody,
    operate::Removed,
    operations::OperationAnswer,
    operations::OperationBody,
    operations::OperationList,
    OperationView,
    reset::ForkBody,
    reset::ResetAnswer,
    reset::ResetBody,
    start::StartBody,
    start::Started,
    ProblemBody,
)))]
struct Schemas;

pub(crate) fn document(options: &Options, routes: &[Described]) -> Value {
    let mut paths = Map::new();
    for route in routes {
        let path = paths.entry(format!("/api/v1{}", route.path)).or_insert_with(|| json!({}));
        path[route.method.as_str().to_lowercase()] = operation(route);
    }
    let mut schemas = serde_json::to_value(Schemas::openapi()).unwrap_or_default();
    schemas["components"]["schemas"]["TimelineView"] = view::timeline_schema();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Outlast",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Instances of an Outlast store: read, wait, and operate.",
        },
        "servers": [{ "url": if options.base_path.is_empty() { "/" } else { &options.base_path } }],
        "security": [{ "bearer": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas["components"]["schemas"],
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operation(route: &Described) -> Value {
    let about = &route.about;
    let in_path = segments(route.path)
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": of_segment(name) }));
    let in_query = about.params.iter().map(|Param(name, values, meaning)| {
        json!({ "name": name, "in": "query", "description": meaning, "schema": of_values(values) })
    });
    let in_header = about.is_keyed.then(|| {
        json!({
            "name": "Idempotency-Key", "in": "header", "schema": { "type": "string", "maxLength": 1024 },
            "description": "a repeated request with the same key has no effect",
        })
    });
    let traced = about.is_traced.then(|| {
        json!({
            "name": "traceparent", "in": "header", "schema": { "type": "string" },
            "description": "the W3C trace context of the caller, which the traces of the instance continue; another text is ignored",
        })
    });
    let mut operation = json!({
        "operationId": format!("{} {}", route.method, route.path),
        "summary": about.summary,
        "parameters": in_path.chain(in_query).chain(in_header).chain(traced).collect::<Vec<_>>(),
        "responses": responses(route),
        "x-scope": route.scope.map(|scope| scope.as_str()),
    });
    if let Some(name) = about.body {
        let media = if name == "CloudEventBody" { STRUCTURED } else { "application/json" };
        operation["requestBody"] =
            json!({ "required": true, "content": { media: { "schema": reference(name) } } });
    }
    if route.scope.is_none() {
        operation["security"] = json!([]);
    }
    operation
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// The answers by status: those of success, and the problems that the request can have.
fn responses(route: &Described) -> Value {
    let about = &route.about;
    let mut responses = Map::new();
    for status in if about.statuses.is_empty() { &[200] } else { about.statuses } {
        let media = if about.media.is_empty() { "application/json" } else { about.media };
        let schema = about.answer.map_or(json!({}), reference);
        let answer = json!({ "description": "The answer.", "content": { media: { "schema": schema } } });
        responses.insert(status.to_string(), answer);
    }
    for code in Code::ALL.iter().filter(|code| can_have(route, code)) {
        let status = responses.entry(code.status.as_u16().to_string()).or_insert_with(|| {
            json!({ "description": "", "content": { "application/problem+json": { "schema": reference("ProblemBody") } } })
        });
        let known = status["description"].as_str().unwrap_or_default();
        let comma = if known.is_empty() { "" } else { ", " };
        status["description"] = format!("{known}{comma}`{}`: {}", code.name, code.title).into();
    }
    Value::Object(responses)
}

/// Whether requests of the route can have the problem.
fn can_have(route: &Described, code: &Code) -> bool {
    let is_write = route.method != Method::GET;
    let has_body = route.about.body.is_some();
    match code.status {
        StatusCode::METHOD_NOT_ALLOWED => false,
        StatusCode::CONFLICT => is_write,
        StatusCode::NOT_FOUND => route.path.contains('{') || route.about.body == Some("CloudEventBody"),
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNSUPPORTED_MEDIA_TYPE | StatusCode::REQUEST_TIMEOUT => {
            has_body
        }
        _ => *code != Code::READ_ONLY || is_write,
    }
}

fn of_values(values: &Values) -> Value {
    match values {
        Values::Text => json!({ "type": "string" }),
        Values::Flag => json!({ "type": "boolean" }),
        Values::Whole(from, u64::MAX) => json!({ "type": "integer", "minimum": from }),
        Values::Whole(from, to) => json!({ "type": "integer", "minimum": from, "maximum": to }),
    }
}

/// The schema of a segment of the path.
fn of_segment(name: &str) -> Value {
    match name {
        "n" | "event" => json!({ "type": "integer", "minimum": 0 }),
        "execution" => json!({ "type": "string", "pattern": "^(latest|[0-9]+)$" }),
        _ => json!({ "type": "string", "minLength": 1 }),
    }
}

/// The names in braces.
fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
}
