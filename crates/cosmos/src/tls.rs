//! TLS of the SDK's HTTP client. The SDK would bring `aws-lc-rs`, whose C code takes minutes to build; the store uses `ring`, as the
//! PostgreSQL store does.

use crate::error::CosmosStoreError;
use rustls::crypto::CryptoProvider;
use std::sync::OnceLock;

/// Chooses the cryptography of this process, unless the program did. An error if the system has no authorities: the SDK's client
/// would panic, also for an endpoint without TLS.
pub(crate) fn prepare() -> Result<(), CosmosStoreError> {
    if CryptoProvider::get_default().is_none() {
        // Another thread may have been faster: then its choice is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    // The authorities of a process rarely change, and reading them takes milliseconds.
    static HAS_AUTHORITIES: OnceLock<()> = OnceLock::new();
    if HAS_AUTHORITIES.get().is_none() {
        if rustls_native_certs::load_native_certs().certs.is_empty() {
            return Err(CosmosStoreError::NoAuthorities);
        }
        let _ = HAS_AUTHORITIES.set(());
    }
    Ok(())
}
