//! The address at which a run shows its numbers to Prometheus.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

/// A socket that listens. Clones share it.
#[derive(Debug, Clone)]
pub struct MetricsListener(Arc<TcpListener>);

impl MetricsListener {
    /// Listens at an address.
    ///
    /// # Errors
    /// It is taken, or not of this machine.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self(Arc::new(listener)))
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    pub(crate) fn accepting(&self) -> io::Result<tokio::net::TcpListener> {
        tokio::net::TcpListener::from_std(self.0.try_clone()?)
    }
}

impl PartialEq for MetricsListener {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
