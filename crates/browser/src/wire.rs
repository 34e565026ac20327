//! Requests of WebDriver: JSON over HTTP/1.1, a connection per request.
//!
//! Each test has a tokio runtime of its own, so a connection does not outlive its request.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::handshake;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::fmt;
use tokio::net::TcpStream;

/// The answer of the driver to a request that it could not carry out.
#[derive(Debug)]
pub(crate) struct Refused {
    /// The code of the WebDriver specification, such as `no such element`.
    code: String,
    message: String,
}

impl Refused {
    /// The refusal to click a disabled element, which WebDriver itself clicks without effect.
    pub(crate) fn disabled() -> Self {
        Self { code: "element not interactable".to_string(), message: "the element is disabled".to_string() }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.message.lines().next().unwrap_or_default();
        write!(f, "{}: {line}", self.code)
    }
}

/// Sends a request to the driver on a port of the loopback, and returns `value` of its answer.
pub(crate) async fn ask(port: u16, method: Method, path: &str, body: &Value) -> Result<Value, Refused> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("ChromeDriver listens");
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await.expect("ChromeDriver speaks HTTP");
    let text = if method == Method::POST { body.to_string() } else { String::new() };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, format!("127.0.0.1:{port}"))
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(text)))
        .expect("a valid request");
    let exchange = async move {
        let answer = sender.send_request(request).await.expect("ChromeDriver answers");
        answer.into_body().collect().await.expect("a whole answer").to_bytes()
    };
    // The connection ends when the exchange has dropped its sender.
    let (bytes, _) = tokio::join!(exchange, connection);
    let mut answer: Value = serde_json::from_slice(&bytes).expect("an answer in JSON");
    let value = answer["value"].take();
    match value["error"].as_str() {
        None => Ok(value),
        Some(code) => Err(Refused {
            code: code.to_string(),
            message: value["message"].as_str().unwrap_or_default().to_string(),
        }),
    }
}
