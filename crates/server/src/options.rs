//! The options of the server.

use crate::access::Tokens;
use crate::tls::Tls;
use outlast::RuntimeOptions;
use std::time::Duration;

/// The options of [`router`](crate::router).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The name of the store on the pages. It must not hold a password.
    pub store: String,
    /// Whether requests may change instances. Without it every such request is refused.
    pub operate: bool,
    /// The tokens; `None` admits every request, with all scopes. Leave it at `None` only where all users of the address are trusted.
    pub tokens: Option<Tokens>,
    /// The host names, without ports, under which clients reach the server, beside those of the loopback.
    pub hosts: Vec<String>,
    /// The path under which the router is mounted, such as `/outlast`; empty at the root. Links of the pages begin with it.
    pub base_path: String,
    /// Further entries of the navigation: their names and paths.
    pub links: Vec<(String, String)>,
    /// The most deliveries of a message, which is an option of the runtimes. The diagnosis names it.
    pub max_attempts: u32,
    /// The most requests at a time.
    pub requests: usize,
    /// The most streams and waits at a time.
    pub streams: usize,
    /// The most streams and waits of one caller at a time. A caller is a token, or an address without a token.
    pub streams_per_caller: usize,
    /// The most bytes of the body of a request.
    pub body_bytes: usize,
    /// The longest time for the body of a request.
    pub body_timeout: Duration,
    /// The requests that a caller may make per second, on average. A caller is a token, or an address without a token.
    pub request_rate: f64,
    /// The requests that a caller may make at once, above the rate.
    pub request_burst: u32,
    /// The instances that all operations together may change per second, at most.
    pub operation_rate: u32,
    /// TLS, for [`serve`](crate::serve()); `None` serves plain HTTP.
    pub tls: Option<Tls>,
    /// The most connections at a time, for [`serve`](crate::serve()). Further connections wait.
    pub connections: usize,
    /// The longest time for the headers of a request, and the longest time that a connection stays open without a request, for
    /// [`serve`](crate::serve()).
    pub header_timeout: Duration,
    /// The longest time for which a client may read nothing of an answer, for [`serve`](crate::serve()).
    pub write_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            store: "store".to_string(),
            operate: false,
            tokens: None,
            hosts: Vec::new(),
            base_path: String::new(),
            links: Vec::new(),
            max_attempts: RuntimeOptions::default().max_attempts,
            requests: 64,
            streams: 32,
            streams_per_caller: 16,
            body_bytes: 4 * 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            request_rate: 500.0,
            request_burst: 1_000,
            operation_rate: 200,
            tls: None,
            connections: 512,
            header_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
        }
    }
}
