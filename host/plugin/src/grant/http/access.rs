//! Whether a request may be sent, and to which addresses.

use super::address::{canonical, is_public};
use super::limit::HttpLimit;
use super::refusal::Refusal;
use super::rule::{Rule, Scheme};
use super::servers::ServerPool;
use super::target::Target;
use crate::grant::error::GrantError;
use crate::outside::HttpResponder;
use gavel_endpoint::tls_client_config;
#[cfg(test)]
use gavel_endpoint::trusting;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio_rustls::TlsConnector;

/// The servers that a plugin may ask by its grants.
pub(crate) struct HttpAccess {
    rules: Vec<Rule>,
    tls: Option<TlsConnector>,
    /// Answers in place of the servers.
    pub(super) responder: Option<Arc<dyn HttpResponder>>,
    /// The limiter that its requests wait for.
    pub(super) limit: Option<HttpLimit>,
    /// Servers that answer the same requests.
    pub(super) pool: Option<ServerPool>,
    /// The environment variables that the plugin sees, with their values.
    pub(super) variables: Vec<(String, String)>,
}

impl HttpAccess {
    pub(crate) fn open(rules: Vec<Rule>, responder: Option<Arc<dyn HttpResponder>>) -> Result<Self, GrantError> {
        let secure = responder.is_none() && rules.iter().any(|rule| rule.scheme == Scheme::Https);
        let tls = secure.then(tls_client_config).transpose()?.map(|config| Arc::new(config).into());
        Ok(Self { rules, tls, responder, limit: None, pool: None, variables: Vec::new() })
    }

    /// The same access, whose requests wait for a limiter and go to one of several servers.
    pub(crate) fn paced(self, limit: Option<HttpLimit>, pool: Option<ServerPool>) -> Self {
        Self { limit, pool, ..self }
    }

    /// The same access of a plugin that sees these environment variables.
    pub(crate) fn with_variables(self, variables: Vec<(String, String)>) -> Self {
        Self { variables, ..self }
    }

    /// Whether the target may be asked at all.
    pub(super) fn admit(&self, target: &Target) -> Result<(), Refusal> {
        match self.rules.iter().any(|rule| rule.covers(target.scheme, &target.host, target.port)) {
            true => Ok(()),
            false => Err(Refusal::NotGranted(target.clone())),
        }
    }

    /// The addresses of a target that may be connected to: public ones, and those
    /// that a grant names.
    pub(super) fn reachable(&self, target: &Target, addresses: &[SocketAddr]) -> Result<Vec<SocketAddr>, Refusal> {
        let named = |address| self.rules.iter().any(|rule| rule.names_address(target.scheme, address, target.port));
        let may = |address: &&SocketAddr| is_public(address.ip()) || named(canonical(address.ip()));
        let reachable: Vec<SocketAddr> = addresses.iter().filter(may).copied().collect();
        match addresses.first() {
            Some(first) if reachable.is_empty() => Err(Refusal::Address(target.clone(), canonical(first.ip()))),
            _ => Ok(reachable),
        }
    }

    /// The TLS connector; present where a real https server is granted.
    pub(super) fn tls(&self) -> Option<&TlsConnector> {
        self.tls.as_ref()
    }

    #[cfg(test)]
    pub(super) fn with_roots(rules: Vec<Rule>, roots: tokio_rustls::rustls::RootCertStore) -> Self {
        Self {
            rules,
            tls: Some(Arc::new(trusting(roots).unwrap()).into()),
            responder: None,
            limit: None,
            pool: None,
            variables: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(grants: &[&str]) -> HttpAccess {
        let rules = grants.iter().map(|grant| Rule::parse(grant).unwrap()).collect();
        HttpAccess { rules, tls: None, responder: None, limit: None, pool: None, variables: Vec::new() }
    }

    /// The addresses that a target which resolves to `addresses` would be connected to.
    fn reach(grants: &[&str], uri: &str, addresses: &[&str]) -> Result<Vec<String>, Refusal> {
        let (access, target) = (access(grants), Target::of(&uri.parse().unwrap()).unwrap());
        access.admit(&target)?;
        let addresses: Vec<_> = addresses.iter().map(|ip| SocketAddr::new(ip.parse().unwrap(), target.port)).collect();
        Ok(access.reachable(&target, &addresses)?.iter().map(|address| address.ip().to_string()).collect())
    }

    #[test]
    fn a_name_reaches_public_addresses_only() {
        let reached = reach(&["judge.example"], "https://judge.example/", &["10.0.0.1", "1.1.1.1", "::1"]);
        assert_eq!(reached.unwrap(), ["1.1.1.1"]);
        for inside in ["127.0.0.1", "169.254.169.254", "192.168.0.9", "fd00:ec2::254", "::ffff:10.0.0.1"] {
            let refusal = reach(&["judge.example"], "https://judge.example/", &[inside]).unwrap_err();
            assert!(matches!(refusal, Refusal::Address(..)), "{refusal}");
        }
    }

    #[test]
    fn an_address_inside_is_reached_where_it_is_named() {
        let inside = ["10.0.0.5"];
        let name = "http://judge.internal:8000";
        assert!(reach(&[name], name, &inside).is_err());
        assert_eq!(reach(&[name, "http://10.0.0.5:8000"], name, &inside).unwrap(), inside);
        assert!(reach(&[name, "http://10.0.0.5:9000"], name, &inside).is_err());
        assert!(reach(&[name, "https://10.0.0.5:8000"], name, &inside).is_err());
        assert_eq!(reach(&["http://10.0.0.5"], "http://10.0.0.5", &inside).unwrap(), inside);
        assert_eq!(reach(&["http://localhost:1"], "http://localhost:1", &["127.0.0.1", "::1"]).unwrap().len(), 2);
        // `localhost` is loopback, whatever a resolver returns.
        assert!(reach(&["http://localhost:1"], "http://localhost:1", &inside).is_err());
    }

    #[test]
    fn what_is_not_granted_is_refused_by_name() {
        let refusal = reach(&["judge.example"], "http://169.254.169.254/latest/meta-data", &[]).unwrap_err();
        let text = "the request to http://169.254.169.254:80 was refused: it is not granted";
        assert_eq!(refusal.to_string(), text);
    }
}
