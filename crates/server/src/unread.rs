//! Bodies that no handler has read to their end. The server closes the connection after such a request, and must tell the client.

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::CONNECTION;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

/// Whether the body of a request was read to its end.
pub(crate) struct Unread(Arc<AtomicBool>);

/// A body that notes its end.
struct Watched {
    body: Body,
    is_read: Arc<AtomicBool>,
}

impl Unread {
    /// Watches the body of a request.
    pub(crate) fn watch(request: Request) -> (Request, Self) {
        let is_read = Arc::new(AtomicBool::new(request.body().is_end_stream()));
        let unread = Self(is_read.clone());
        (request.map(|body| Body::new(Watched { body, is_read })), unread)
    }

    /// Tells the client that the connection ends with this answer, if it does.
    pub(crate) fn announce(&self, response: &mut Response) {
        if !self.0.load(Ordering::Relaxed) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(polled, Poll::Ready(None)) || self.body.is_end_stream() {
            self.is_read.store(true, Ordering::Relaxed);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
