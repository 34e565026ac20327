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
//! The feature `tls` adds addresses with `https://`: the client then trusts the authorities of the operating system, and those of
#![cfg_attr(feature = "tls", doc = "[`HttpClient::with_root_certificates`].")]
#![cfg_attr(not(feature = "tls"), doc = "`HttpClient::with_root_certificates`.")]
//! Without it, put a proxy that speaks TLS beside the client where the network is not trusted. The token needs the scope `payloads` for
//! statuses and values, and `operate` for starts and messages.

mod dead_letter;
mod history;
mod hold;
mod kv;
mod manage;
mod node;
mod once;
mod operation;
mod queue;
mod read;
mod reset;
mod send;
mod start;
#[cfg(feature = "tls")]
mod tls;
mod transport;
mod wire;

pub use operation::{Operation, OperationPreview};
pub use start::HttpStartBuilder;

use hyper_util::client::legacy::Client as Hyper;
#[cfg(not(feature = "tls"))]
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

#[cfg(feature = "tls")]
use tls::Connector;
#[cfg(not(feature = "tls"))]
type Connector = HttpConnector;

/// A client of one server. Cloning a client is cheap.
///
/// Every method is cancellation safe in the sense of [`outlast::Client`]: a request whose future is dropped was carried out as a whole, or
/// not at all.
#[derive(Clone)]
pub struct HttpClient {
    http: Hyper<Connector, Body>,
    /// The authorities of a server with TLS.
    #[cfg(feature = "tls")]
    roots: rustls::RootCertStore,
    /// The address of the server with its base path, without `/` at the end.
    base: String,
    token: Option<String>,
    reason: String,
    codec: Codec,
}

impl HttpClient {
    /// A client of the server at this address, such as `http://127.0.0.1:7411` or `https://ops.example.com/outlast`. An address with
    /// `https://` needs the feature `tls`.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidInput`] for an address that is neither `http://HOST` nor `https://HOST`, or that needs the feature `tls`.
    pub fn new(address: &str) -> Result<Self, ClientError> {
        let base = address.trim_end_matches('/').to_string();
        let invalid = |message: &str| Err(ClientError::InvalidInput { message: message.to_string() });
        let uri = base.parse::<hyper::Uri>().ok().filter(|uri| uri.host().is_some());
        let is_https = match uri.as_ref().and_then(hyper::Uri::scheme_str) {
            Some("http") => false,
            Some("https") => true,
            _ => {
                return invalid(
                    "the address of the server is neither http://HOST:PORT nor https://HOST:PORT",
                );
            }
        };
        #[cfg(not(feature = "tls"))]
        if is_https {
            return invalid("an address with https:// needs the feature `tls` of outlast-client-http");
        }
        #[cfg(feature = "tls")]
        let roots = if is_https { tls::native_roots() } else { rustls::RootCertStore::empty() };
        let reason = "a request of outlast-client-http".to_string();
        Ok(Self {
            #[cfg(feature = "tls")]
            http: pooled(tls::connector(roots.clone())?),
            #[cfg(not(feature = "tls"))]
            http: pooled(HttpConnector::new()),
            #[cfg(feature = "tls")]
            roots,
            base,
            token: None,
            reason,
            codec: Codec::default(),
        })
    }

    /// The same client, which also trusts a server whose certificate one of these authorities has signed: certificates in PEM form. A
    /// server with an address of `http://` has no certificate.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidInput`] for a text without certificates.
    #[cfg(feature = "tls")]
    pub fn with_root_certificates(mut self, pem: &[u8]) -> Result<Self, ClientError> {
        tls::add_roots(&mut self.roots, pem)?;
        Ok(Self { http: pooled(tls::connector(self.roots.clone())?), ..self })
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

/// A pool of connections.
fn pooled(connector: Connector) -> Hyper<Connector, Body> {
    let mut http = Hyper::builder(TokioExecutor::new());
    http.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE).build(connector)
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("base", &self.base).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(address: &str) -> String {
        HttpClient::new(address).unwrap_err().to_string()
    }

    #[test]
    fn address_without_host_or_with_another_scheme_is_refused() {
        for address in ["", "127.0.0.1:7411", "ftp://127.0.0.1", "/outlast", "http://"] {
            assert!(refusal(address).contains("neither http://"), "{address}");
        }
        HttpClient::new("http://127.0.0.1:7411/outlast/").unwrap();
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn address_with_tls_names_the_feature_that_it_needs() {
        assert!(refusal("https://ops.example.com").contains("needs the feature `tls`"));
    }

    #[cfg(feature = "tls")]
    #[test]
    fn text_without_certificates_is_refused() {
        let client = HttpClient::new("https://ops.example.com").unwrap();
        for (pem, part) in [
            ("", "no certificate"),
            ("hello", "no certificate"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "cannot be an authority"),
            ("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n", "not in PEM form"),
        ] {
            let error = client.clone().with_root_certificates(pem.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
