//! One entry of a grant: `[SCHEME://]HOST[:PORT]`.

use super::address::canonical;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// The scheme of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "http" => Some(Self::Http),
            "https" => Some(Self::Https),
            _ => None,
        }
    }

    pub(super) fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// The host of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host {
    /// An address in its canonical form.
    Address(IpAddr),
    /// A name in lower case.
    Name(String),
}

impl Host {
    /// Reads a host of a URL, where an IPv6 address has brackets.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        if let Some(address) = text.strip_prefix('[') {
            let address = address.strip_suffix(']').and_then(|inner| inner.parse::<Ipv6Addr>().ok());
            return address.map(|address| Self::Address(canonical(address.into()))).ok_or("is not an IPv6 address");
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return match address {
                IpAddr::V4(_) => Ok(Self::Address(address)),
                IpAddr::V6(_) => Err("has an IPv6 address without brackets"),
            };
        }
        let part = |part: &str| {
            (1..64).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        };
        if text.is_empty() {
            return Err("names no host");
        }
        if !text.split('.').all(part) {
            return Err("names a host with characters that no host name has");
        }
        // Resolvers read `127.1` and `0x7f000001` as addresses; here an address must be written in full.
        let last = text.rsplit('.').next().unwrap_or(text);
        if last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x") || last.starts_with("0X") {
            return Err("names neither a host nor a whole address");
        }
        Ok(Self::Name(text.to_ascii_lowercase()))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Address(address) => write!(f, "{address}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// The requests that an entry covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(super) scheme: Scheme,
    host: Pattern,
    port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Host(Host),
    /// `.example.com` for all names below `example.com`.
    Below(String),
}

impl Rule {
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let (scheme, authority) = match text.split_once("://") {
            Some((scheme, authority)) => {
                (Scheme::parse(scheme).ok_or("has a scheme other than http and https")?, authority)
            }
            None => (Scheme::Https, text),
        };
        if authority.contains(['/', '?', '#', '@']) {
            return Err("has more than scheme, host and port: a grant is for a whole server");
        }
        // Colons within brackets belong to an IPv6 address, and so do several colons without brackets.
        let brackets = authority.rfind(']').map_or(0, |end| end + 1);
        let (host, port) = match authority[brackets..].split_once(':') {
            Some((before, port)) if !port.contains(':') => {
                let host = &authority[..brackets + before.len()];
                let digits = port.bytes().all(|b| b.is_ascii_digit());
                let port = port.parse().ok().filter(|port| digits && *port != 0);
                (host, port.ok_or("has a port that is not from 1 to 65535")?)
            }
            _ => (authority, scheme.port()),
        };
        let host = match host.strip_prefix("*.") {
            Some(parent) => match Host::parse(parent)? {
                Host::Name(parent) => Pattern::Below(format!(".{parent}")),
                Host::Address(_) => return Err("has a wildcard before an address"),
            },
            None if host.contains('*') => {
                return Err("has a wildcard that is not at the beginning, as in *.example.com");
            }
            None => Pattern::Host(Host::parse(host)?),
        };
        Ok(Self { scheme, host, port })
    }

    /// Whether the grant covers this server.
    pub(super) fn covers(&self, scheme: Scheme, host: &Host, port: u16) -> bool {
        let covered = match (&self.host, host) {
            (Pattern::Host(granted), host) => granted == host,
            (Pattern::Below(parent), Host::Name(name)) => name.len() > parent.len() && name.ends_with(parent),
            (Pattern::Below(_), Host::Address(_)) => false,
        };
        covered && self.scheme == scheme && self.port == port
    }

    /// Whether the grant names exactly this address, or is `localhost` and the
    /// address is loopback.
    pub(super) fn names_address(&self, scheme: Scheme, address: IpAddr, port: u16) -> bool {
        let named = match &self.host {
            Pattern::Host(Host::Address(granted)) => *granted == address,
            Pattern::Host(Host::Name(name)) => name == "localhost" && address.is_loopback(),
            Pattern::Below(_) => false,
        };
        named && self.scheme == scheme && self.port == port
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(rule: &str, scheme: Scheme, host: &str, port: u16) -> bool {
        Rule::parse(rule).unwrap().covers(scheme, &Host::parse(host).unwrap(), port)
    }

    #[test]
    fn a_grant_covers_its_scheme_its_host_and_its_port() {
        use Scheme::{Http, Https};
        assert!(covers("judge.example", Https, "Judge.Example", 443));
        assert!(covers("https://judge.example:8443", Https, "judge.example", 8443));
        assert!(covers("http://127.0.0.1:8000", Http, "127.0.0.1", 8000));
        assert!(covers("http://[::1]:8000", Http, "[0:0::1]", 8000));
        assert!(covers("http://127.0.0.1", Http, "[::ffff:127.0.0.1]", 80));
        assert!(covers("[::1]", Https, "[::1]", 443));
        for (scheme, host, port) in
            [(Http, "judge.example", 443), (Https, "judge.example", 8443), (Https, "x.judge.example", 443)]
        {
            assert!(!covers("judge.example", scheme, host, port), "{scheme:?} {host} {port}");
        }
    }

    #[test]
    fn a_wildcard_covers_what_lies_below_and_nothing_else() {
        let below = |host| covers("*.example.com", Scheme::Https, host, 443);
        assert!(below("a.example.com") && below("a.b.example.com"));
        assert!(!below("example.com") && !below("badexample.com") && !below("a.example.com.evil.test"));
        assert!(!below("10.0.0.1"));
    }

    #[test]
    fn what_is_no_server_is_refused() {
        for (wrong, what) in [
            ("", "no host"),
            ("https://", "no host"),
            ("ftp://judge.example", "scheme"),
            ("https://judge.example/score", "whole server"),
            ("https://user@judge.example", "whole server"),
            ("judge.example:0", "port"),
            ("judge.example:70000", "port"),
            ("judge.example:+80", "port"),
            ("judge.example:", "port"),
            ("::1", "without brackets"),
            ("[::1", "IPv6"),
            ("*", "wildcard"),
            ("judge.*.example", "wildcard"),
            ("*.10.0.0.1", "before an address"),
            ("127.1", "whole address"),
            ("0x7f000001", "whole address"),
            ("2130706433", "whole address"),
            ("jüdge.example", "characters"),
            ("judge.example.", "characters"),
        ] {
            let error = Rule::parse(wrong).unwrap_err();
            assert!(error.contains(what), "{wrong}: {error}");
        }
    }
}
