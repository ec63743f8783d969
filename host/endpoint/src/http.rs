//! What HTTP failures and answers say, in a line, and which servers are of this machine.

use reqwest::Url;
use std::net::IpAddr;

/// The most bytes of an answer that are shown.
const SHOWN_BYTES: usize = 500;

/// The innermost cause of a failed request, which explains the failure.
pub fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".into();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// The beginning of an answer in one line.
pub fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES)]);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if bytes.len() > SHOWN_BYTES { format!("{line}…") } else { line }
}

/// Whether a URL is of this machine, whose servers are not behind a proxy.
pub fn is_of_this_machine(url: &str) -> bool {
    let url = Url::parse(url).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_this_machine_are_known_by_their_addresses() {
        for url in ["http://127.0.0.1:8000", "http://localhost", "https://[::1]:80/a", "http://127.9.9.9"] {
            assert!(is_of_this_machine(url), "{url}");
        }
        for url in ["http://10.0.0.7:8000", "http://localhost.example.org", "http://[::2]", "http://example.org"] {
            assert!(!is_of_this_machine(url), "{url}");
        }
    }
}
