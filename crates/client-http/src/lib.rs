//! A client of Outlast over the HTTP API of `outlast serve`, for services that cannot reach the database. It has the methods of
//! [`outlast::Client`] under the same names and with the same errors, except those of the table.
//!
//! | no method | because |
//! |---|---|
//! | `bulk_select`, `bulk_select_ids`, `bulk_apply` | the server changes many instances: [`HttpClient::preview_operation`], [`HttpClient::start_operation`] |
//! | `delete_instance_bulk`, `prune_executions_bulk` | an operation deletes many instances; prune one instance at a time |
//! | `apply_retention`, `preview_retention` | retention runs beside the store, in a runtime or by the command `outlast retention` |
//! | `append_audit` | the server writes the audit, with the name of the token |
//! | `diagnose_instance` | [`HttpClient::why`] returns the sentence of the diagnosis |
//! | `raise_event_typed`, `enqueue_event_typed` | they panic: use [`HttpClient::try_raise_event_typed`] and [`HttpClient::try_enqueue_event_typed`] |
//! | `raise_event_persistent` | it is the deprecated name of [`HttpClient::enqueue_event`] |
//! | `raise_event2` | it is for tests of a newer version of the contract |
//! | `has_management_capability` | each call returns [`ClientError::ManagementNotAvailable`] if the store cannot do it |
//! | `with_limits` | the server has the limits |
//! | `with_request` | the server records the id of the HTTP request |
//!
//! A method that changes an instance takes no actor: the server records the name of the token. A start, an event or a cancellation that the
//! instance cannot take is an error, and a page has at most 500 items.
//!
//! ```no_run
//! # async fn start() -> Result<(), outlast::ClientError> {
//! use outlast_client_http::HttpClient;
//! use std::time::Duration;
//!
//! let client = HttpClient::new("http://127.0.0.1:7411")?.with_token("0123..").with_reason("checkout service");
//! client.start_orchestration("order-1", "Order", r#"{"total":12}"#).await?;
//! let status = client.wait_for_orchestration("order-1", Duration::from_secs(30)).await?;
//! # drop(status);
//! # Ok(())
//! # }
//! ```
//!
//! The address is `http://`: put a proxy that speaks TLS beside the client where the network is not trusted. The token needs the scope
//! `payloads` for statuses and values, and `operate` for starts and messages.

mod dead_letter;
mod history;
mod hold;
mod kv;
mod manage;
mod node;
mod once;
mod operation;
mod read;
mod reset;
mod send;
mod queue;
mod start;
mod transport;
mod wire;

pub use operation::{Operation, OperationPreview};
pub use start::HttpStartBuilder;

use hyper_util::client::legacy::Client as Hyper;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use outlast::ClientError;
use outlast::runtime::Codec;
use std::fmt;
use std::time::Duration;
use transport::Body;

/// Servers and proxies close an idle connection after half a minute or more. A shorter time avoids requests on a connection that is
/// being closed.
const IDLE: Duration = Duration::from_secs(10);

/// A client of one server. Cloning a client is cheap.
///
/// Every method is cancellation safe in the sense of [`outlast::Client`]: a request whose future is dropped was carried out as a whole, or
/// not at all.
#[derive(Clone)]
pub struct HttpClient {
    http: Hyper<HttpConnector, Body>,
    /// The address of the server with its base path, without `/` at the end.
    base: String,
    token: Option<String>,
    reason: String,
    codec: Codec,
}

impl HttpClient {
    /// A client of the server at this address, such as `http://127.0.0.1:7411` or `http://ops.example.com/outlast`.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidInput`] for an address that is not `http://HOST`.
    pub fn new(address: &str) -> Result<Self, ClientError> {
        let base = address.trim_end_matches('/').to_string();
        let is_http = base
            .parse::<hyper::Uri>()
            .is_ok_and(|uri| uri.scheme_str() == Some("http") && uri.host().is_some());
        if !is_http {
            return Err(ClientError::InvalidInput {
                message: "the address of the server is not http://HOST:PORT".to_string(),
            });
        }
        let mut http = Hyper::builder(TokioExecutor::new());
        let http = http.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE).build_http();
        let reason = "a request of outlast-client-http".to_string();
        Ok(Self { http, base, token: None, reason, codec: Codec::default() })
    }

    /// The same client with a token of the server's token file.
    #[must_use]
    pub fn with_token(self, token: impl Into<String>) -> Self {
        Self { token: Some(token.into()), ..self }
    }

    /// The same client with another reason in the audit records of its requests, such as the name of the service.
    #[must_use]
    pub fn with_reason(self, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..self }
    }

    /// The same client with another codec for typed values.
    #[must_use]
    pub fn with_codec(self, codec: Codec) -> Self {
        Self { codec, ..self }
    }

    /// The codec for typed values.
    pub fn codec(&self) -> Codec {
        self.codec
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("base", &self.base).finish_non_exhaustive()
    }
}
