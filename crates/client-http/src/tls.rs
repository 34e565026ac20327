//! TLS of the client: the authorities of the operating system, and those that the program names.

use crate::transport::OPERATION;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use outlast::ClientError;
use outlast::providers::ProviderError;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::error::Error;
use std::io;
use std::sync::Arc;

/// Connects to `https://` with TLS 1.2 or 1.3, and to `http://` without.
pub(crate) type Connector = HttpsConnector<HttpConnector>;

/// The authorities of the operating system.
pub(crate) fn native_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    // A certificate that cannot be read is left out: a server that needs it is refused with its name.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// Adds the certificates of a text in PEM form.
pub(crate) fn add_roots(roots: &mut RootCertStore, pem: &[u8]) -> Result<(), ClientError> {
    let invalid = |message: String| ClientError::InvalidInput { message };
    let found = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|_| invalid("the certificates are not in PEM form".to_string()))?;
    if found.is_empty() {
        return Err(invalid("the text holds no certificate in PEM form".to_string()));
    }
    for certificate in found {
        let added = roots.add(certificate);
        added.map_err(|error| invalid(format!("a certificate cannot be an authority: {error}")))?;
    }
    Ok(())
}

pub(crate) fn connector(roots: RootCertStore) -> Result<Connector, ClientError> {
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_safe_default_protocol_versions();
    let config = config.map_err(|error| ProviderError::permanent(OPERATION, error.to_string()))?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    Ok(HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1().build())
}

/// Whether the client refused the certificate of the server. The same request is refused again.
pub(crate) fn is_refused_certificate(error: &(dyn Error + 'static)) -> bool {
    if let Some(error) = error.downcast_ref::<rustls::Error>() {
        return matches!(error, rustls::Error::InvalidCertificate(_));
    }
    // The source of an I/O error is that of the error inside.
    let inside = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    inside.is_some_and(|inside| is_refused_certificate(inside))
        || error.source().is_some_and(is_refused_certificate)
}
