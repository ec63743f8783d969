//! The certificates that this process trusts over TLS.

use std::sync::Arc;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, Error, RootCertStore};

/// How this process trusts servers.
pub type TlsClientConfig = ClientConfig;

/// There are no certificates to check a server's certificate with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no root certificates to check https servers with: {0}\nhint: install the system's ca-certificates, or name a file of them in SSL_CERT_FILE"
)]
pub struct NoRootCertificates(String);

/// A TLS configuration that trusts the machine's certificates, or those in the
/// file that `SSL_CERT_FILE` names.
///
/// # Errors
/// There are none.
pub fn tls_client_config() -> Result<ClientConfig, NoRootCertificates> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let errors: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        let what = if errors.is_empty() { "this machine has none".to_owned() } else { errors.join("; ") };
        return Err(NoRootCertificates(what));
    }
    trusting(roots).map_err(|error| NoRootCertificates(error.to_string()))
}

/// A TLS configuration that trusts these certificates.
///
/// # Errors
/// The versions of the protocol are not supported.
pub fn trusting(roots: RootCertStore) -> Result<ClientConfig, Error> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
