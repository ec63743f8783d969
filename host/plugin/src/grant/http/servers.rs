//! Servers that answer the same requests of a plugin.

use super::target::Target;
use crate::grant::error::GrantError;
use crate::outside::{CallMeter, Outside};
use gavel_endpoint::{ChosenServer, OnEndpointDown, Servers};
use http::header::HOST;
use http::{HeaderValue, Request, Uri};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use wasmtime_wasi_http::{Error, WasiBody};

/// Servers that answer the same requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpServers {
    /// Their URLs. A request to the first one goes to any of them.
    pub urls: Vec<String>,
    /// What happens while none answers; by default, requests fail at once.
    #[serde(default, skip_serializing_if = "OnEndpointDown::is_default")]
    pub on_endpoint_down: OnEndpointDown,
}

/// Servers that share the requests of a plugin to the first of them.
pub(crate) struct ServerPool {
    uris: Vec<Uri>,
    servers: Arc<Servers>,
}

impl ServerPool {
    pub(crate) fn open(table: &HttpServers, outside: &Outside) -> Result<Self, GrantError> {
        let uris = table.urls.iter().map(|url| parse(url)).collect::<Result<Vec<_>, _>>()?;
        let name = table.urls.first().map(|url| format!("the server {url}")).unwrap_or_default();
        let servers = Servers::new(name, uris.len(), table.on_endpoint_down).with_max_pause(outside.max_pause);
        let servers = Arc::new(servers);
        outside.add_servers(servers.clone());
        Ok(Self { uris, servers })
    }

    /// Whether a request is for the first server.
    pub(super) fn is_for(&self, uri: &Uri) -> bool {
        let Some(first) = self.uris.first() else { return false };
        (first.path(), first.query()) == (uri.path(), uri.query())
            && Target::of(first).is_ok_and(|first| Target::of(uri).is_ok_and(|target| target == first))
    }

    /// Waits while all servers are down, until one is to be tried again. The wait is not charged to the call.
    pub(super) async fn wait_until_up(&self, meter: &CallMeter) -> Result<(), Error> {
        if self.servers.down().is_none() {
            return Ok(());
        }
        let is_up = {
            let _queued = meter.pauses().queue();
            self.servers.until_up().await
        };
        meter.pauses().settle();
        is_up.map(drop).map_err(|_| Error::ConnectionRefused)
    }

    /// Sends a request to the server that was chosen for it; `None` while all servers are down.
    pub(super) fn choose(&self, request: &mut Request<WasiBody>) -> Result<Option<ChosenServer<'_>>, Error> {
        let Ok(server) = self.servers.choose() else { return Ok(None) };
        let uri = &self.uris[server.number];
        if let Some(authority) = uri.authority() {
            let host = HeaderValue::from_str(authority.as_str()).map_err(|_| Error::HttpRequestUriInvalid)?;
            request.headers_mut().insert(HOST, host);
        }
        *request.uri_mut() = uri.clone();
        Ok(Some(server))
    }
}

/// Checks the servers of a grant.
pub(in crate::grant) fn check(servers: &HttpServers) -> Result<(), GrantError> {
    if servers.on_endpoint_down == OnEndpointDown::Stop {
        return Err(GrantError::Server { url: String::new(), what: "cannot stop the run: use \"pause\" or \"drop\"" });
    }
    match servers.urls.is_empty() {
        true => Err(GrantError::Server { url: String::new(), what: "are none" }),
        false => servers.urls.iter().try_for_each(|url| parse(url).map(drop)),
    }
}

fn parse(url: &str) -> Result<Uri, GrantError> {
    let wrong = || GrantError::Server { url: url.to_owned(), what: "is not a URL with http or https" };
    let uri: Uri = url.parse().map_err(|_| wrong())?;
    Target::of(&uri).map(|_| uri).map_err(|_| wrong())
}
