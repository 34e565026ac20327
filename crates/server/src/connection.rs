//! One connection: its time limits, and its end when the server stops.

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// The most bytes of the headers of a request.
const HEADER_BYTES: usize = 64 * 1024;

/// The time and the bytes for which a connection that the server has closed is read on. A close with unread bytes would reset the
/// connection, and a client that still sends its body would lose the answer which refuses it.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 16 * 1024 * 1024;

/// The times that a client may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// For the headers of a request, and between two requests.
    pub(crate) header: Duration,
    /// For reading the next part of an answer.
    pub(crate) write: Duration,
}

/// A connection of a client.
pub(crate) struct Connection {
    pub(crate) peer: SocketAddr,
    pub(crate) router: Router,
    pub(crate) limits: Limits,
    pub(crate) tls: Option<TlsAcceptor>,
    /// Changes when the server stops.
    pub(crate) stopped: watch::Receiver<()>,
}

impl Connection {
    /// Answers requests until the client closes the connection, a limit is over, or the server stops.
    pub(crate) async fn run(mut self, stream: TcpStream) {
        // A hint leaves at once. Without the option it leaves later.
        let _ = stream.set_nodelay(true);
        match self.tls.take() {
            None => self.serve(stream).await,
            // A client that does not finish the handshake has the time of the headers. The error is not logged: the client sees it.
            Some(tls) => {
                if let Ok(Ok(stream)) = timeout(self.limits.header, tls.accept(stream)).await {
                    self.serve(stream).await;
                }
            }
        }
    }

    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let Self { peer, router, limits, mut stopped, .. } = self;
        let io = TokioIo::new(Patient::new(stream, limits.write));
        let router = TowerToHyperService::new(router);
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            router.call(request)
        });
        let mut served = pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.header)
                .max_buf_size(HEADER_BYTES)
                .serve_connection(io, service)
        );
        // An error of a connection is not logged: its client sees it.
        tokio::select! {
            _ = served.as_mut() => return,
            _ = stopped.changed() => served.as_mut().graceful_shutdown(),
        }
        let _ = served.await;
    }
}

/// A stream whose writes must go on. A client that reads nothing for the time is cut off.
struct Patient<T> {
    stream: T,
    patience: Duration,
    /// The end of the patience with the write that is pending.
    stalled: Option<Pin<Box<Sleep>>>,
    /// After the close: the end of the time for unread bytes, and the bytes so far.
    lingering: Option<(Pin<Box<Sleep>>, usize)>,
}

impl<T> Patient<T> {
    fn new(stream: T, patience: Duration) -> Self {
        Self { stream, patience, stalled: None, lingering: None }
    }

    fn timed<R>(&mut self, cx: &mut Context<'_>, polled: Poll<io::Result<R>>) -> Poll<io::Result<R>> {
        if polled.is_ready() {
            self.stalled = None;
            return polled;
        }
        let end = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.patience)));
        end.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Patient<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Patient<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.timed(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.timed(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        self.timed(cx, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            let polled = Pin::new(&mut self.stream).poll_shutdown(cx);
            std::task::ready!(self.timed(cx, polled))?;
        }
        let Self { stream, lingering, .. } = &mut *self;
        let (end, bytes) = lingering.get_or_insert_with(|| (Box::pin(tokio::time::sleep(LINGER)), 0));
        let mut space = [0; 8 * 1024];
        while *bytes < LINGER_BYTES {
            let mut unread = ReadBuf::new(&mut space);
            match Pin::new(&mut *stream).poll_read(cx, &mut unread) {
                Poll::Ready(Ok(())) if !unread.filled().is_empty() => *bytes += unread.filled().len(),
                // The client has closed the connection too.
                Poll::Ready(_) => break,
                Poll::Pending => return end.as_mut().poll(cx).map(Ok),
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test(start_paused = true)]
    async fn write_to_a_client_that_reads_nothing_ends() {
        let (stream, mut client) = tokio::io::duplex(8);
        let mut patient = Patient::new(stream, Duration::from_secs(30));
        let hour = Duration::from_secs(3_600);
        let stalled = timeout(hour, patient.write_all(&[0; 9])).await.expect("the write ends");
        assert_eq!(stalled.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let mut read = [0; 8];
        client.read_exact(&mut read).await.unwrap();
        patient.write_all(&[0; 8]).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn close_waits_for_the_end_of_the_client_for_a_second() {
        let (stream, client) = tokio::io::duplex(8);
        let mut patient = Patient::new(stream, Duration::from_secs(30));
        assert!(timeout(LINGER / 2, patient.shutdown()).await.is_err(), "the client does not close");
        timeout(LINGER, patient.shutdown()).await.expect("the second is over").unwrap();
        drop(client);
        let (stream, mut client) = tokio::io::duplex(8);
        let mut patient = Patient::new(stream, Duration::from_secs(30));
        let sends = async move { client.write_all(&[0; 20_000]).await.unwrap() };
        let (closed, ()) = tokio::join!(patient.shutdown(), sends);
        closed.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn write_to_a_slow_client_goes_on() {
        let (stream, mut client) = tokio::io::duplex(1);
        let mut patient = Patient::new(stream, Duration::from_secs(30));
        let slow = async {
            for _ in 0..5 {
                tokio::time::advance(Duration::from_secs(20)).await;
                client.read_u8().await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(patient.write_all(&[0; 5]), slow);
        written.unwrap();
    }
}
