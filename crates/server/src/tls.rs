//! TLS of the server: a chain of certificates and its key, in PEM files.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The certificate and the key of a server, for [`Options::tls`](crate::Options::tls).
#[derive(Clone)]
pub struct Tls(Arc<ServerConfig>);

/// A certificate or a key that cannot be used. The message names the file and never its content.
#[derive(Debug)]
pub struct TlsError(String);

impl Tls {
    /// Reads a chain of certificates, that of the server first, and its private key. Both are PEM files. The server speaks TLS 1.2 and
    /// 1.3.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, that holds no certificate or no key, or a key that is not that of the certificate.
    pub fn from_pem_files(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let failed = |path: &Path, what: &str, error: PemError| match error {
            PemError::Io(error) => TlsError(format!("cannot read {}: {error}", path.display())),
            _ => TlsError(format!("{} holds no {what} in PEM form", path.display())),
        };
        let no_certificate = |error| failed(certificate, "certificate", error);
        let chain = CertificateDer::pem_file_iter(certificate).map_err(no_certificate)?;
        let chain = chain.collect::<Result<Vec<_>, _>>().map_err(no_certificate)?;
        if chain.is_empty() {
            return Err(no_certificate(PemError::NoItemsFound));
        }
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| failed(key, "private key", error))?;
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret));
        let unusable = |error| {
            let (certificate, key) = (certificate.display(), key.display());
            TlsError(format!("{certificate} and {key} cannot be used together: {error}"))
        };
        let mut config = config.map_err(unusable)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}
