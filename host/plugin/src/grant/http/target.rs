//! The server that a request is for.

use super::rule::{Host, Scheme};
use std::fmt;
use wasmtime_wasi_http::Error;

/// The server that a request is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) scheme: Scheme,
    pub(super) host: Host,
    pub(super) port: u16,
}

impl Target {
    pub(super) fn of(uri: &http::Uri) -> Result<Self, Error> {
        let invalid = || Error::HttpRequestUriInvalid;
        let scheme = uri.scheme_str().and_then(Scheme::parse).ok_or_else(invalid)?;
        let authority = uri.authority().ok_or_else(invalid)?;
        let host = Host::parse(authority.host()).map_err(|_| invalid())?;
        let port = authority.port_u16().unwrap_or(scheme.port());
        // The parsed host and port must be the whole authority, without a user or a port that is not a number.
        let written = authority.as_str();
        if written != authority.host() && written != format!("{}:{port}", authority.host()) {
            return Err(invalid());
        }
        Ok(Self { scheme, host, port })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(uri: &str) -> Result<Target, Error> {
        Target::of(&uri.parse().unwrap())
    }

    #[test]
    fn a_target_is_what_it_looks_like() {
        assert_eq!(target("https://Judge.Example").unwrap().to_string(), "https://judge.example:443");
        assert_eq!(target("http://[::1]:8000/x").unwrap().to_string(), "http://[::1]:8000");
        for wrong in
            ["https://judge.example@evil.test/", "http://judge.example:99999/", "http://127.1/", "ftp://a/", "/"]
        {
            assert!(target(wrong).is_err(), "{wrong}");
        }
    }
}
