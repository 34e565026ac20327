//! A receiver of OTLP over HTTP with protobuf bodies, on a loopback port.

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::{self, span, status};
use prost::Message;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// The answer of a collector to a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Accept,
    /// Reads the request and never answers.
    Hang,
    /// Refuses the request for good.
    Refuse,
}

/// A span as it arrived.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Span {
    pub(crate) trace: String,
    pub(crate) id: String,
    /// Empty for a root.
    pub(crate) parent: String,
    pub(crate) name: String,
    pub(crate) kind: span::SpanKind,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) is_error: bool,
    /// The traces and spans of its links.
    pub(crate) links: Vec<(String, String)>,
    attributes: Vec<KeyValue>,
}

impl Span {
    fn new(span: v1::Span) -> Self {
        let is_error = span.status.as_ref().is_some_and(|status| status.code() == status::StatusCode::Error);
        Self {
            trace: hex(&span.trace_id),
            id: hex(&span.span_id),
            parent: hex(&span.parent_span_id),
            kind: span.kind(),
            name: span.name,
            start_ns: span.start_time_unix_nano,
            end_ns: span.end_time_unix_nano,
            is_error,
            links: span.links.iter().map(|link| (hex(&link.trace_id), hex(&link.span_id))).collect(),
            attributes: span.attributes,
        }
    }

    /// The value of an attribute as a text; empty if there is none.
    pub(crate) fn attribute(&self, key: &str) -> String {
        let found = self.attributes.iter().find(|attribute| attribute.key == key);
        let value =
            found.and_then(|attribute| attribute.value.as_ref()).and_then(|value| value.value.as_ref());
        match value {
            Some(any_value::Value::StringValue(text)) => text.clone(),
            Some(any_value::Value::IntValue(number)) => number.to_string(),
            Some(other) => panic!("{key} is {other:?}"),
            None => String::new(),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) struct Collector {
    pub(crate) url: String,
    state: Arc<State>,
}

struct State {
    answer: Answer,
    /// All bodies, to look for payloads.
    bodies: Mutex<Vec<u8>>,
    services: Mutex<Vec<String>>,
    spans: watch::Sender<Vec<Span>>,
}

impl Collector {
    pub(crate) async fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State {
            answer,
            bodies: Mutex::default(),
            services: Mutex::default(),
            spans: watch::Sender::new(Vec::new()),
        });
        let served = Arc::clone(&state);
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let state = Arc::clone(&served);
                let service = service_fn(move |request| receive(Arc::clone(&state), request));
                let http = hyper::server::conn::http1::Builder::new();
                tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { url, state }
    }

    /// All spans so far.
    pub(crate) fn spans(&self) -> Vec<Span> {
        self.state.spans.borrow().clone()
    }

    /// Waits until the spans satisfy a condition.
    pub(crate) async fn until(&self, condition: impl Fn(&[Span]) -> bool) -> Vec<Span> {
        let mut spans = self.state.spans.subscribe();
        let found = spans.wait_for(|spans| condition(spans)).await.unwrap();
        found.clone()
    }

    pub(crate) fn received(&self, text: &str) -> bool {
        let bodies = self.state.bodies.lock().unwrap();
        bodies.windows(text.len()).any(|window| window == text.as_bytes())
    }

    pub(crate) fn services(&self) -> Vec<String> {
        self.state.services.lock().unwrap().clone()
    }
}

async fn receive(state: Arc<State>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    assert_eq!((request.method().as_str(), request.uri().path()), ("POST", "/v1/traces"));
    assert_eq!(request.headers()["content-type"], "application/x-protobuf");
    let body = request.into_body().collect().await.unwrap().to_bytes();
    match state.answer {
        Answer::Hang => std::future::pending::<()>().await,
        Answer::Refuse => {
            let refused = Response::builder().status(StatusCode::BAD_REQUEST);
            return Ok(refused.body(Full::default()).unwrap());
        }
        Answer::Accept => {}
    }
    let request = ExportTraceServiceRequest::decode(body.clone()).unwrap();
    state.bodies.lock().unwrap().extend_from_slice(&body);
    for resource in request.resource_spans {
        let attributes = resource.resource.unwrap_or_default().attributes;
        for attribute in attributes.into_iter().filter(|attribute| attribute.key == "service.name") {
            if let Some(any_value::Value::StringValue(name)) = attribute.value.and_then(|value| value.value) {
                state.services.lock().unwrap().push(name);
            }
        }
        let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
        state.spans.send_modify(|all| all.extend(spans.map(Span::new)));
    }
    let answer = ExportTraceServiceResponse::default().encode_to_vec();
    Ok(Response::new(Full::from(answer)))
}
