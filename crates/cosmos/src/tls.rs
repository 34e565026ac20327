//! TLS of the SDK's HTTP client. The SDK would bring `aws-lc-rs`, whose C code takes minutes to build; the store uses `ring`, as the
//! PostgreSQL store does.

use rustls::crypto::CryptoProvider;

/// Chooses the cryptography of this process, unless the program did.
pub(crate) fn prepare() {
    if CryptoProvider::get_default().is_none() {
        // Another thread may have been faster: then its choice counts.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
