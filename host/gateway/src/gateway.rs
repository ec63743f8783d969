//! The server that programs ask in place of a model.

use crate::error::GatewayError;
use crate::http::router;
use crate::listener::listen;
use crate::registry::{OpenSession, Registry};
use crate::session::ChatSession;
use axum::http::HeaderMap;
use gavel_serve::openai::ApiError;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::AbortHandle;

/// Where a gateway listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayAddress {
    /// With port 0, it has a free one.
    pub address: SocketAddr,
    /// The address at which programs reach it, if it is another one.
    pub url: Option<String>,
}

/// A server that programs ask in place of a model. Clones share it; it ends when the last is dropped.
#[derive(Clone)]
pub struct Gateway(Arc<Shared>);

struct Shared {
    address: GatewayAddress,
    registry: Arc<Registry>,
    listening: Mutex<Option<Listening>>,
}

struct Listening {
    url: String,
    server: AbortHandle,
}

impl Gateway {
    /// A gateway that does not listen yet.
    pub fn new(address: GatewayAddress) -> Self {
        Self(Arc::new(Shared { address, registry: Arc::default(), listening: Mutex::default() }))
    }

    /// Where it listens, or will.
    pub fn address(&self) -> &GatewayAddress {
        &self.0.address
    }

    /// Listens, if it does not do so already.
    ///
    /// # Errors
    /// Its port is taken, or cannot be used.
    pub async fn listen(&self) -> Result<(), GatewayError> {
        if self.listening().is_some() {
            return Ok(());
        }
        let GatewayAddress { address, url } = &self.0.address;
        let listener = listen(*address).await?;
        let bound = listener.local_addr().map_err(|source| GatewayError::Listen { address: *address, source })?;
        let url = url.clone().unwrap_or_else(|| format!("http://{}", reachable(bound)));
        let server = tokio::spawn(gavel_http::serve(listener, router(self.0.registry.clone()))).abort_handle();
        tracing::info!("agents that are programs ask the gateway at {url}");
        let mut listening = self.0.listening.lock().unwrap_or_else(PoisonError::into_inner);
        *listening = Some(Listening { url: url.trim_end_matches('/').to_owned(), server });
        Ok(())
    }

    /// Opens a session, which ends when what this gives is dropped.
    ///
    /// # Errors
    /// It does not listen and cannot, or the machine gives no random numbers.
    pub async fn open(&self, session: Arc<dyn ChatSession>) -> Result<OpenSession, GatewayError> {
        self.listen().await?;
        let url = self.listening().unwrap_or_default();
        self.0.registry.open(&url, session)
    }

    /// The session of a request, by the id in its address, its key, or both.
    ///
    /// # Errors
    /// It names no open session, or two different ones.
    pub fn session(&self, id: Option<&str>, headers: &HeaderMap) -> Result<Arc<dyn ChatSession>, ApiError> {
        self.0.registry.find(id, headers)
    }

    fn listening(&self) -> Option<String> {
        let listening = self.0.listening.lock().unwrap_or_else(PoisonError::into_inner);
        listening.as_ref().map(|listening| listening.url.clone())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let listening = self.listening.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(listening) = listening {
            listening.server.abort();
        }
    }
}

/// The address at which a program of this machine reaches a server that listens there.
fn reachable(bound: SocketAddr) -> SocketAddr {
    let ip = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, bound.port())
}
