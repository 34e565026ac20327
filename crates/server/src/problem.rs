//! Errors in the form of RFC 9457.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use outlast::client::ClientError;
use serde::Serialize;
use utoipa::ToSchema;

/// A class of errors. The table is also the page `/problems`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code {
    pub(crate) name: &'static str,
    pub(crate) status: StatusCode,
    pub(crate) title: &'static str,
    pub(crate) retryable: bool,
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $code:ident = $name:literal, $status:ident, $title:literal, $retryable:literal;)*) => {
        impl Code {
            $($(#[doc = $doc])* pub(crate) const $code: Code = Code {
                name: $name,
                status: StatusCode::$status,
                title: $title,
                retryable: $retryable,
            };)*
            /// All codes, for the page of errors.
            pub(crate) const ALL: &[Code] = &[$(Code::$code),*];
        }
    };
}

codes! {
    INVALID = "invalid_request", BAD_REQUEST, "The request is not valid", false;
    NO_REASON = "reason_required", BAD_REQUEST, "The request has no reason", false;
    UNAUTHENTICATED = "unauthenticated", UNAUTHORIZED, "The request has no valid token", false;
    SCOPE = "scope_missing", FORBIDDEN, "The token lacks a scope", false;
    READ_ONLY = "read_only", FORBIDDEN, "The server is read-only", false;
    CROSS_SITE = "cross_site", FORBIDDEN, "The request comes from another site", false;
    HOST = "host_not_allowed", MISDIRECTED_REQUEST, "The Host of the request is not allowed", false;
    NOT_FOUND = "not_found", NOT_FOUND, "There is no such resource", false;
    METHOD = "method_not_allowed", METHOD_NOT_ALLOWED, "The resource does not have this method", false;
    EXISTS = "already_exists", CONFLICT, "The instance exists already", false;
    ENDED = "ended", CONFLICT, "The instance has ended", false;
    RUNNING = "still_running", CONFLICT, "The instance runs", false;
    CHILD = "is_child", CONFLICT, "The instance is a child", false;
    TURN = "turn_running", CONFLICT, "A turn of the instance runs", true;
    SET_CHANGED = "set_changed", CONFLICT, "The set of instances has changed", false;
    OPERATIONS = "too_many_operations", CONFLICT, "The server has too many operations", true;
    UNDELIVERABLE = "undeliverable", CONFLICT, "The dead letter cannot be delivered", false;
    TOO_LARGE = "too_large", PAYLOAD_TOO_LARGE, "The request is too large", false;
    MEDIA = "media_type", UNSUPPORTED_MEDIA_TYPE, "The request is not JSON", false;
    SLOW = "request_timeout", REQUEST_TIMEOUT, "The request took too long to arrive", true;
    RATE = "rate_limited", TOO_MANY_REQUESTS, "The caller has made too many requests", true;
    BUSY = "busy", SERVICE_UNAVAILABLE, "The server has too many requests", true;
    UNAVAILABLE = "store_unavailable", SERVICE_UNAVAILABLE, "The store cannot answer now", true;
    UNSUPPORTED = "unsupported", NOT_IMPLEMENTED, "The store does not support this", false;
    STORE = "store_error", INTERNAL_SERVER_ERROR, "The store failed", false;
    INTERNAL = "internal", INTERNAL_SERVER_ERROR, "The server failed", false;
}

/// An error of a request. The outer layer renders it, because it knows the id of the request.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    pub(crate) detail: String,
    /// The number of seconds after which the request may succeed, for the header `Retry-After`.
    pub(crate) retry_after: Option<u64>,
    /// The expected and the present number of instances of an operation.
    pub(crate) counts: Option<(u64, u64)>,
}

/// An error as RFC 9457 defines it, with members of this API.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProblemBody {
    /// The page that lists the errors.
    #[serde(rename = "type")]
    kind: String,
    title: &'static str,
    status: u16,
    /// The cause, the instance that it concerns, and the remedy.
    detail: String,
    /// The class of the error, for programs.
    code: &'static str,
    /// Whether the same request may succeed later.
    retryable: bool,
    /// The id of the request, which audit records repeat.
    request_id: String,
    /// Of `set_changed`: the number of instances that the request named.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<u64>,
    /// Of `set_changed`: the number of instances that match now.
    #[serde(skip_serializing_if = "Option::is_none")]
    matching: Option<u64>,
}

impl Problem {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), retry_after: None, counts: None }
    }

    /// A problem that may be over after some seconds.
    pub(crate) fn later(code: Code, detail: impl Into<String>, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..Self::new(code, detail) }
    }

    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(Code::INVALID, detail)
    }

    pub(crate) fn no_instance(instance: &str) -> Self {
        Self::new(
            Code::NOT_FOUND,
            format!(
                "there is no instance '{instance:.80}': an instance that was just started appears with its first turn"
            ),
        )
    }

    /// The problem of a response that the router made itself.
    pub(crate) fn of_status(status: StatusCode) -> Self {
        match status {
            StatusCode::NOT_FOUND => {
                Self::new(Code::NOT_FOUND, "there is no such path: /api/v1/openapi.json lists them")
            }
            StatusCode::METHOD_NOT_ALLOWED => {
                Self::new(Code::METHOD, "the path has other methods: /api/v1/openapi.json lists them")
            }
            StatusCode::PAYLOAD_TOO_LARGE => {
                Self::new(Code::TOO_LARGE, "the body of the request is above the limit")
            }
            status if status.is_server_error() => Self::new(Code::INTERNAL, "the server could not answer"),
            _ => Self::invalid("the request could not be understood"),
        }
    }

    pub(crate) fn body(self, base: &str, request_id: &str) -> ProblemBody {
        ProblemBody {
            kind: format!("{base}/problems#{}", self.code.name),
            title: self.code.title,
            status: self.code.status.as_u16(),
            detail: self.detail,
            code: self.code.name,
            retryable: self.code.retryable,
            request_id: request_id.to_string(),
            expected: self.counts.map(|(expected, _)| expected),
            matching: self.counts.map(|(_, matching)| matching),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.code.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<ClientError> for Problem {
    fn from(error: ClientError) -> Self {
        let code = match &error {
            ClientError::Provider(error) if error.is_retryable() => Code::UNAVAILABLE,
            ClientError::Provider(_) => Code::STORE,
            ClientError::ManagementNotAvailable => Code::UNSUPPORTED,
            ClientError::InvalidInput { .. } => Code::INVALID,
            ClientError::Timeout => Code::TURN,
            ClientError::InstanceStillRunning { .. } => Code::RUNNING,
            ClientError::CannotDeleteSubOrchestration { .. } => Code::CHILD,
            ClientError::InstanceNotFound { .. } => Code::NOT_FOUND,
        };
        Self::new(code, error.to_string())
    }
}
