//! Runs the router on a listener.

use crate::connection::{Connection, Limits};
use crate::options::Options;
use crate::tls::Tls;
use axum::Router;
use axum::response::Redirect;
use axum::routing::get;
use outlast::Client;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// The time that open requests have after the stop. Streams and waits end with it.
const GRACE: Duration = Duration::from_secs(3);
/// The pause after an accept that failed, for example because the process has too many open files.
const PAUSE: Duration = Duration::from_millis(200);

/// Serves until `stop` resolves; then open requests have some seconds to end.
///
/// Cancellation safety: when the future is dropped, all connections are closed.
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
    let limits = Limits { header: options.header_timeout, write: options.write_timeout };
    let tls = options.tls.as_ref().map(Tls::acceptor);
    let places = Arc::new(Semaphore::new(options.connections));
    let base = options.base_path.trim_matches('/').to_string();
    let router = crate::router_with(client, options, own);
    let router = match base.as_str() {
        "" => router,
        base => {
            // `nest` knows the path without the last slash only.
            let home = format!("/{base}/instances");
            let redirect = get(move || std::future::ready(Redirect::to(&home)));
            Router::new().nest(&format!("/{base}"), router).route(&format!("/{base}/"), redirect)
        }
    };
    let (stopping, stopped) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        let next = async {
            // A connection beyond the bound waits in the queue of the operating system.
            let place = Arc::clone(&places).acquire_owned().await;
            (listener.accept().await, place)
        };
        let (accepted, place) = tokio::select! {
            next = next => next,
            () = &mut stop => break,
        };
        // The results of connections that have ended are not kept.
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, peer)) => {
                let (router, tls, stopped) = (router.clone(), tls.clone(), stopped.clone());
                let connection = Connection { peer, router, limits, tls, stopped };
                connections.spawn(async move {
                    connection.run(stream).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
    drop((listener, stopped));
    // An error says that no connection is open.
    let _ = stopping.send(());
    let ended = async { while connections.join_next().await.is_some() {} };
    // The connections that are left are closed.
    let _ = tokio::time::timeout(GRACE, ended).await;
    Ok(())
}
