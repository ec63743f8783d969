//! The keys and ids of sessions: who knows one may ask for its session, and nobody guesses one.

use crate::error::GatewayError;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use blake3::Hash;
use gavel_serve::openai::ApiError;
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt::Write;

/// The headers in which clients send keys. The first has `Bearer` before it.
const HEADERS: [&str; 3] = ["authorization", "x-api-key", "x-goog-api-key"];

/// A new secret of 256 bits, with this text before it.
pub(crate) fn secret(prefix: &str) -> Result<String, GatewayError> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| GatewayError::NoRandomness)?;
    let mut text = prefix.to_owned();
    for byte in bytes {
        // Writing into a text cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

/// What is kept of a secret. It is looked up in place of the secret, so that the time of the search shows nothing of it.
pub(crate) fn hash(secret: &str) -> Hash {
    blake3::hash(secret.as_bytes())
}

/// The keys in the headers of a request; `None` without any.
///
/// # Errors
/// Two headers have different keys.
pub(crate) fn key(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let mut found = None;
    for name in HEADERS {
        for value in headers.get_all(name) {
            let text = value.to_str().map_err(|_| unauthorized("the key has characters that no key has"))?;
            let key = match name {
                "authorization" => bearer(text),
                _ => text,
            };
            match found {
                _ if key.trim().is_empty() => {}
                None => found = Some(key.trim()),
                Some(other) if other == key.trim() => {}
                Some(_) => return Err(unauthorized("the headers have two different keys")),
            }
        }
    }
    Ok(found)
}

fn bearer(text: &str) -> &str {
    match text.split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => key,
        None if text.eq_ignore_ascii_case("bearer") => "",
        _ => text,
    }
}

pub(crate) fn unauthorized(message: &str) -> ApiError {
    ApiError::coded(StatusCode::UNAUTHORIZED, "invalid_api_key", message)
}
