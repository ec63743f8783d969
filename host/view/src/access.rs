//! Who is answered: a browser that opened the link, and that came from this page. A page of another site can neither read
//! an answer (no `Access-Control-*` header is ever sent), nor act with the cookie (it is `SameSite=Strict`), nor reach the
//! server under another name (`Host` is checked).

use crate::error::{Result, ViewError};
use axum::http::{HeaderMap, Uri, header};
use blake3::Hash;
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt::Write;

/// The token of a server, and the names by which it may be asked.
pub struct Access {
    token: String,
    hash: Hash,
    port: u16,
    hosts: [String; 2],
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Its `Host` is another one: a name that somebody else's DNS leads to this machine.
    Host,
    /// A page of another site sent it.
    Origin,
    /// It has neither the link's token nor the cookie.
    Token,
}

/// A request that is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admitted {
    /// By the token in its link: the cookie is set.
    ByLink,
    /// By the cookie.
    ByCookie,
}

impl Access {
    /// The access to a server on this port of 127.0.0.1, with a new token of 256 bits.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn new(port: u16) -> Result<Self> {
        let mut bytes = [0; 32];
        SystemRandom::new().fill(&mut bytes).map_err(|_| ViewError::NoRandomness)?;
        let mut token = String::with_capacity(64);
        for byte in bytes {
            // Writing into a text cannot fail.
            let _ = write!(token, "{byte:02x}");
        }
        let hosts = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{port}"));
        Ok(Self { hash: blake3::hash(token.as_bytes()), token, port, hosts })
    }

    /// The link that opens the page.
    pub fn link(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token)
    }

    /// The value of the `Set-Cookie` header. The cookie's name has the port: browsers send cookies to all ports.
    pub(crate) fn cookie(&self) -> String {
        format!("{}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie_name(), self.token)
    }

    fn cookie_name(&self) -> String {
        format!("gavel-view-{}", self.port)
    }

    pub(crate) fn admit(&self, uri: &Uri, headers: &HeaderMap) -> std::result::Result<Admitted, Refusal> {
        let is_own = |text: &str| self.hosts.iter().any(|host| host == text);
        let mut hosts = headers.get_all(header::HOST).iter().map(|host| host.to_str().unwrap_or_default());
        // A request line with a whole address would name the host there.
        let is_addressed = uri.host().is_none() || uri.authority().is_some_and(|host| is_own(host.as_str()));
        if !hosts.next().is_some_and(is_own) || hosts.next().is_some() || !is_addressed {
            return Err(Refusal::Host);
        }
        let is_own_origin = |origin: &str| origin.strip_prefix("http://").is_some_and(is_own);
        if !headers.get_all(header::ORIGIN).iter().all(|origin| origin.to_str().is_ok_and(is_own_origin)) {
            return Err(Refusal::Origin);
        }
        let by_link = uri.path() == "/" && token_of(uri).is_some_and(|token| self.is_token(token));
        if by_link {
            return Ok(Admitted::ByLink);
        }
        let name = self.cookie_name();
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let mut cookies = lines.flat_map(|line| line.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
        match cookies.any(|(other, value)| other == name && self.is_token(value)) {
            true => Ok(Admitted::ByCookie),
            false => Err(Refusal::Token),
        }
    }

    /// Hashes are compared, in constant time, so that the time of an answer shows nothing of the token.
    fn is_token(&self, text: &str) -> bool {
        blake3::hash(text.as_bytes()) == self.hash
    }
}

fn token_of(uri: &Uri) -> Option<&str> {
    uri.query()?.split('&').find_map(|pair| pair.strip_prefix("token="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_page_with_the_token_is_answered() {
        let access = Access::new(4000).unwrap();
        let token = access.token.clone();
        let cookie = format!("a=b; gavel-view-4000={token}");
        let ask = |uri: &str, headers: &[(&str, &str)]| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(axum::http::HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
            }
            access.admit(&uri.parse().unwrap(), &map)
        };
        let here = ("host", "127.0.0.1:4000");
        let link = format!("/?a=1&token={token}");
        assert_eq!(ask(&link, &[here]), Ok(Admitted::ByLink));
        assert_eq!(ask("/api/runs", &[("host", "localhost:4000"), ("cookie", &cookie)]), Ok(Admitted::ByCookie));
        let own = ("origin", "http://127.0.0.1:4000");
        assert_eq!(ask("/api/runs", &[here, own, ("cookie", &cookie)]), Ok(Admitted::ByCookie));
        for host in
            ["127.0.0.1", "127.0.0.1:4001", "evil.example:4000", "127.0.0.1.evil.example:4000", "[::1]:4000", ""]
        {
            assert_eq!(ask(&link, &[("host", host)]), Err(Refusal::Host), "{host}");
        }
        assert_eq!(ask(&link, &[]), Err(Refusal::Host));
        assert_eq!(ask(&link, &[here, ("host", "evil.example")]), Err(Refusal::Host));
        assert_eq!(ask(&format!("http://evil.example{link}"), &[here]), Err(Refusal::Host));
        for origin in ["null", "http://evil.example", "https://127.0.0.1:4000", "http://127.0.0.1:4001"] {
            assert_eq!(ask("/", &[here, ("origin", origin), ("cookie", &cookie)]), Err(Refusal::Origin), "{origin}");
        }
        let (half, other) = (&token[..32], format!("gavel-view-4001={token}"));
        for uri in ["/".to_owned(), format!("/?token={half}"), "/?token=".into(), format!("/api/runs?token={token}")] {
            assert_eq!(ask(&uri, &[here]), Err(Refusal::Token), "{uri}");
            assert_eq!(ask(&uri, &[here, ("cookie", &other)]), Err(Refusal::Token), "{uri}");
        }
        assert_ne!(Access::new(4000).unwrap().token, token);
    }
}
