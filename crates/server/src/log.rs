//! The log record of an answer that is the server's failure. It has no path, query, header or body of the request: those may hold ids,
//! tokens and payloads.

use crate::problem::Problem;
use axum::http::{Method, StatusCode};

/// The log target of the server.
const TARGET: &str = "outlast::server";

/// Records an answer with a status from 500 on: at ERROR a failure of the server or its store, at WARN an answer that says that the
/// server is busy, that the store cannot answer now, or that it does not support the request.
pub(crate) fn note(
    id: &str,
    method: &Method,
    route: Option<&str>,
    status: StatusCode,
    problem: Option<&Problem>,
) {
    let status_code = status.as_u16();
    let code = problem.map_or("", |problem| problem.code.name);
    let error =
        problem.map_or_else(|| status.canonical_reason().unwrap_or_default(), |found| found.detail.as_str());
    // A request without a route names a path that the server does not have.
    let (request_id, method, route) = (id, method.as_str(), route.unwrap_or("-"));
    if status == StatusCode::INTERNAL_SERVER_ERROR {
        tracing::error!(target: TARGET, request_id, method, route, status = status_code, code, error, "Answered with an error");
    } else {
        tracing::warn!(target: TARGET, request_id, method, route, status = status_code, code, error, "Answered with an error");
    }
}
