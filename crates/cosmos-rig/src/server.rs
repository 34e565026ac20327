//! The ports: a thread with a runtime of its own, so that a rig outlives the runtime of the test that started it.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::front::{Front, Outcome};

/// The thread of a rig. It ends when this value is dropped.
pub(crate) struct Server {
    pub(crate) runtime: Handle,
    _stop: oneshot::Sender<()>,
}

impl Server {
    /// Serves each listener as the region with the same index.
    pub(crate) fn start(
        front: Arc<Front>,
        listeners: Vec<TcpListener>,
        tls: Option<TlsAcceptor>,
    ) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let serve = move || {
            runtime.block_on(async move {
                let mut regions = JoinSet::new();
                for (region, listener) in listeners.into_iter().enumerate() {
                    regions.spawn(accept(front.clone(), region, listener, tls.clone()));
                }
                // The sender is dropped, never used.
                let _ = stopped.await;
            });
            runtime.shutdown_background();
        };
        std::thread::Builder::new().name("cosmos-rig".into()).spawn(serve)?;
        Ok(Self { runtime: handle, _stop: stop })
    }
}

async fn accept(
    front: Arc<Front>,
    region: usize,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                stream.set_nodelay(true)?;
                connections.spawn(serve_stream(front.clone(), region, stream, tls.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve_stream(front: Arc<Front>, region: usize, stream: TcpStream, tls: Option<TlsAcceptor>) {
    match tls {
        None => serve_connection(front, region, stream).await,
        Some(tls) => {
            // A client that does not trust the certificate is no error of the rig.
            if let Ok(stream) = tls.accept(stream).await {
                serve_connection(front, region, stream).await;
            }
        }
    }
}

/// Serves HTTP/1 or HTTP/2, by the first bytes that the client sends.
async fn serve_connection(
    front: Arc<Front>,
    region: usize,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) {
    let cut = Arc::new(Notify::new());
    let end = cut.clone();
    let service = service_fn(move |request| answer(front.clone(), region, request, cut.clone()));
    let builder = auto::Builder::new(TokioExecutor::new());
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // A client that is gone, or a reset request on HTTP/1, is no error of the rig.
        _ = connection => {}
        () = end.notified() => {}
    }
}

async fn answer(
    front: Arc<Front>,
    region: usize,
    request: Request<Incoming>,
    cut: Arc<Notify>,
) -> Result<Response<Full<Bytes>>, io::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    match front.serve(region, parts, body).await {
        Outcome::Reply(reply) => Ok(reply.into_response()),
        Outcome::Reset => Err(io::Error::other("a fault resets the request")),
        Outcome::DropConnection => {
            cut.notify_one();
            std::future::pending().await
        }
    }
}
