//! An answer of the rig or of the emulator.

use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use serde_json::json;

/// An HTTP response whose body is complete.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn new(status: u16, body: impl Into<Bytes>) -> Self {
        Self { status, headers: vec![("content-type".into(), "application/json".into())], body: body.into() }
    }

    /// A refusal by the rig, in the form that Azure uses.
    pub(crate) fn refusal(status: u16, substatus: u32, message: &str) -> Self {
        let code = match status {
            400 => "BadRequest",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            408 => "RequestTimeout",
            410 => "Gone",
            429 => "TooManyRequests",
            449 => "RetryWith",
            503 => "ServiceUnavailable",
            _ => "Error",
        };
        Self::new(status, json!({ "code": code, "message": message }).to_string())
            .with("x-ms-substatus", substatus.to_string())
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.retain(|(other, _)| other != name);
        self.headers.push((name.to_string(), value.into()));
        self
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub(crate) fn into_response(self) -> Response<Full<Bytes>> {
        let mut builder = Response::builder().status(self.status);
        for (name, value) in &self.headers {
            builder = builder.header(name, value);
        }
        // A fault may have a status or text that HTTP does not allow: the test sees an empty 500 then.
        builder.body(Full::new(self.body)).unwrap_or_else(|_| {
            let mut response = Response::new(Full::default());
            *response.status_mut() = hyper::StatusCode::INTERNAL_SERVER_ERROR;
            response
        })
    }
}
