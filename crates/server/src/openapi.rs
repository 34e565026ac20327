//! The OpenAPI document: paths from the list of routes, schemas from the types of requests and answers.

use crate::api::{dead_letters, operate, operations, start};
use crate::operations::OperationView;
use crate::options::Options;
use crate::problem::ProblemBody;
use crate::routes::Described;
use crate::view;
use axum::http::Method;
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
    view::Executions,
    view::InstancePage,
    view::Nodes,
    view::Pending,
    view::Queues,
    view::Series,
    view::StateView,
    view::StoredEvents,
    view::System,
    view::TimelineView,
    view::Tree,
    view::Why,
    dead_letters::Settled,
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
    let schemas = serde_json::to_value(Schemas::openapi()).unwrap_or_default();
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
    let reference = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let in_path = segments(route.path)
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    let in_query = about.params.iter().map(|(name, meaning)| {
        json!({ "name": name, "in": "query", "description": meaning, "schema": { "type": "string" } })
    });
    let status = match (&route.method, route.path) {
        (&Method::POST, "/instances") => "201",
        (&Method::POST, "/dead-letters/{n}/requeue") => "200",
        (&Method::POST, _) => "202",
        _ => "200",
    };
    let mut answer = json!({ "description": "The answer." });
    if let Some(name) = about.answer {
        answer["content"] = json!({ "application/json": { "schema": reference(name) } });
    }
    let problem = json!({
        "description": "A problem, as RFC 9457 defines it.",
        "content": { "application/problem+json": { "schema": reference("ProblemBody") } },
    });
    let mut operation = json!({
        "summary": about.summary,
        "parameters": in_path.chain(in_query).collect::<Vec<_>>(),
        "responses": { status: answer, "default": problem },
        "x-scope": route.scope.map(|scope| scope.as_str()),
    });
    if let Some(name) = about.body {
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": reference(name) } } });
    }
    if route.scope.is_none() {
        operation["security"] = json!([]);
    }
    operation
}

/// The names in braces.
fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
}
