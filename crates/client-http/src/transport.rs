//! Requests and answers.

use crate::HttpClient;
use crate::wire::ProblemBody;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE};
use hyper::{Method, Request, StatusCode};
use outlast::ClientError;
use outlast::providers::ProviderError;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) type Body = Full<Bytes>;

/// The most bytes of an answer.
const LARGEST: usize = 256 * 1024 * 1024;
/// The header of a key that the server takes once.
pub(crate) const KEY: &str = "idempotency-key";
/// The operation in errors of the connection.
pub(crate) const OPERATION: &str = "http";

/// An answer of the server.
pub(crate) struct Answer<T> {
    pub(crate) status: StatusCode,
    pub(crate) value: T,
}

/// All characters but letters, digits and `-._~`.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The text as a segment of a path or as the value of a parameter.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// The path of an instance. The id is a parameter, so that every id can be named.
pub(crate) fn of_instance(instance: &str, rest: &str, params: &str) -> String {
    let more = if params.is_empty() { String::new() } else { format!("&{params}") };
    format!("/instances/-{rest}?id={}{more}", encoded(instance))
}

impl HttpClient {
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        instance: &str,
        path: &str,
    ) -> Result<Answer<T>, ClientError> {
        self.request(Method::GET, instance, path, None, &[]).await
    }

    /// Sends a body with the client's reason.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        instance: &str,
        path: &str,
        mut body: Value,
        headers: &[(&str, &str)],
    ) -> Result<Answer<T>, ClientError> {
        if body["reason"].is_null() {
            body["reason"] = self.reason.as_str().into();
        }
        self.request(Method::POST, instance, path, Some(body), headers).await
    }

    pub(crate) async fn request<T: DeserializeOwned>(
        &self,
        method: Method,
        instance: &str,
        path: &str,
        body: Option<Value>,
        headers: &[(&str, &str)],
    ) -> Result<Answer<T>, ClientError> {
        let mut request = Request::builder().method(method).uri(format!("{}/api/v1{path}", self.base));
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let text = body.map(|body| body.to_string());
        if text.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::new(Bytes::from(text.unwrap_or_default())));
        let request = request.map_err(|error| ClientError::InvalidInput { message: error.to_string() })?;
        let response = self.http.request(request).await.map_err(|error| unreachable(&error))?;
        let status = response.status();
        let read = Limited::new(response.into_body(), LARGEST).collect().await;
        let bytes = read.map_err(|error| unreachable(&*error))?.to_bytes();
        if !status.is_success() {
            return Err(refused(status, &bytes, instance));
        }
        let value = serde_json::from_slice(&bytes).map_err(|error| {
            // The text of a decoding error may quote a payload.
            let (line, column) = (error.line(), error.column());
            ProviderError::permanent(OPERATION, format!("the answer of the server was not understood (line {line}, column {column}): is it another version?"))
        })?;
        Ok(Answer { status, value })
    }
}

fn unreachable(error: &(dyn std::error::Error + 'static)) -> ClientError {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text.push_str(&format!(": {next}"));
        cause = next.source();
    }
    #[cfg(feature = "tls")]
    if crate::tls::is_refused_certificate(error) {
        let text = format!("the certificate of the server is refused: {text}");
        return ProviderError::permanent(OPERATION, text).into();
    }
    ProviderError::retryable(OPERATION, format!("the server does not answer: {text}")).into()
}

/// The error of a problem, as the client of a store reports it.
fn refused(status: StatusCode, bytes: &[u8], instance: &str) -> ClientError {
    let instance_id = instance.to_string();
    let Ok(problem) = serde_json::from_slice::<ProblemBody>(bytes) else {
        let error = format!("the server answered with status {status}");
        return match status.is_server_error() {
            true => ProviderError::retryable(OPERATION, error).into(),
            false => ProviderError::permanent(OPERATION, error).into(),
        };
    };
    let ProblemBody { code, detail, retryable, .. } = problem;
    match code.as_str() {
        "not_found" if !instance.is_empty() => ClientError::InstanceNotFound { instance_id },
        "still_running" => ClientError::InstanceStillRunning { instance_id },
        "is_child" => ClientError::CannotDeleteSubOrchestration { instance_id },
        "unsupported" => ClientError::ManagementNotAvailable,
        "turn_running" => ClientError::Timeout,
        "invalid_request" | "reason_required" | "ended" | "already_exists" | "too_large"
        | "undeliverable" | "set_changed" => ClientError::InvalidInput { message: detail },
        _ if retryable => ProviderError::retryable(OPERATION, detail).into(),
        _ => ProviderError::permanent(OPERATION, detail).into(),
    }
}
