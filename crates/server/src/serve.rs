//! Runs the router on a listener.

use crate::options::Options;
use axum::Router;
use outlast::Client;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// The time that open requests have after the stop. Streams and waits end with it.
const GRACE: Duration = Duration::from_secs(3);

/// Serves until `stop` resolves; then open requests have some seconds to end.
///
/// Cancellation safety: when the future is dropped, no further connection is accepted.
///
/// # Errors
///
/// An error of the listener. An address that is not of the loopback is refused if [`Options::tokens`] is `None`.
pub async fn serve(
    listener: TcpListener,
    client: Client,
    options: Options,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    serve_with(listener, client, options, Router::new(), stop).await
}

/// [`serve()`] with the routes of [`router_with`](crate::router_with).
///
/// Cancellation safety: when the future is dropped, no further connection is accepted.
///
/// # Errors
///
/// Those of [`serve()`].
pub async fn serve_with(
    listener: TcpListener,
    client: Client,
    options: Options,
    own: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    if options.tokens.is_none() && !listener.local_addr()?.ip().is_loopback() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "an address that other machines reach needs tokens: give a token file, or listen on 127.0.0.1",
        ));
    }
    let base = options.base_path.trim_matches('/').to_string();
    let router = crate::router_with(client, options, own);
    let router = match base.as_str() {
        "" => router,
        base => Router::new().nest(&format!("/{base}"), router),
    };
    let stopped = Arc::new(Notify::new());
    let signal = Arc::clone(&stopped);
    let serving = axum::serve(listener, router).with_graceful_shutdown(async move {
        stop.await;
        signal.notify_one();
    });
    tokio::select! {
        ended = async { serving.await } => ended,
        () = async { stopped.notified().await; tokio::time::sleep(GRACE).await } => Ok(()),
    }
}
