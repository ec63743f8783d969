//! Servers that answer the same requests of a plugin.

use super::target::Target;
use crate::call_meter::CallMeter;
use crate::grant::error::GrantError;
use crate::grant::grants::HttpServers;
use gavel_limiter::{ChosenServer, OnEndpointDown, Servers};
use http::header::HOST;
use http::{HeaderValue, Request, Uri};
use std::time::Instant;
use wasmtime_wasi_http::{Error, WasiBody};

/// Servers that answer the same requests of a plugin, which asks the first one.
pub(crate) struct ServerPool {
    uris: Vec<Uri>,
    servers: Servers,
    on_endpoint_down: OnEndpointDown,
}

impl ServerPool {
    pub(crate) fn open(table: &HttpServers) -> Result<Self, GrantError> {
        let uris = table.urls.iter().map(|url| parse(url)).collect::<Result<Vec<_>, _>>()?;
        let servers = Servers::new(uris.len());
        Ok(Self { uris, servers, on_endpoint_down: table.on_endpoint_down })
    }

    /// Whether a request is to the first of them.
    pub(super) fn is_for(&self, target: &Target) -> bool {
        self.uris.first().is_some_and(|first| Target::of(first).is_ok_and(|first| first == *target))
    }

    /// Waits for a server that can be asked, and lets the request go there.
    pub(super) async fn choose(
        &self,
        request: &mut Request<WasiBody>,
        meter: &CallMeter,
    ) -> Result<ChosenServer<'_>, Error> {
        let server = loop {
            match self.servers.choose() {
                Ok(server) => break server,
                Err(down) if self.on_endpoint_down == OnEndpointDown::Pause => {
                    {
                        let _queued = meter.pauses().queue();
                        self.servers.wait(down).await;
                    }
                    meter.pauses().settle();
                    tracing::debug!("a server is tried after {:.0} s", (Instant::now() - down.since).as_secs_f64());
                }
                Err(_) => return Err(Error::ConnectionRefused),
            }
        };
        let uri = &self.uris[server.number];
        if let Some(authority) = uri.authority() {
            let host = HeaderValue::from_str(authority.as_str()).map_err(|_| Error::HttpRequestUriInvalid)?;
            request.headers_mut().insert(HOST, host);
        }
        *request.uri_mut() = uri.clone();
        Ok(server)
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
