//! TLS on the ports of a rig, with a certificate for the loopback that an authority of the rig signed.

use std::io;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

/// The certificate of the authority, for clients: a client trusts it if `SSL_CERT_FILE` names a file with this text.
pub const AUTHORITY: &str = include_str!("tls/authority.pem");

/// A certificate for `localhost` and `127.0.0.1`, and its key. Both are public, and valid until 2126.
const CERTIFICATE: &[u8] = include_bytes!("tls/server.der");
const KEY: &[u8] = include_bytes!("tls/server.key.der");

pub(crate) fn acceptor() -> io::Result<TlsAcceptor> {
    let chain = vec![CertificateDer::from(CERTIFICATE)];
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(KEY));
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(chain, key);
    let mut config = config.map_err(io::Error::other)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
