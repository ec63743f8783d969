//! The body of a request, as JSON of the form that is expected.

use crate::aside::{Lost, SHORT, Size, aside};
use crate::connections::Client;
use crate::large_bodies::{LargeBodies, Place};
use axum::body::HttpBody;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use bytes::BytesMut;
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::time::timeout;

/// The most values of most bodies. One takes up to 700 bytes in memory, in the variables of a chat template, and 2 in a
/// body.
pub const VALUES: usize = 2 << 20;
/// The time in which a body must come, and for which a large one waits for its place.
const TIME: Duration = Duration::from_secs(60);
/// Bodies up to this size are read without waiting for others.
const SMALL: u64 = 1 << 20;

/// The larger bodies that are in memory at once. One client has at most three quarters of them.
static LARGE: LargeBodies = LargeBodies::new(8, 6);

/// Why a request has no body of the form that is expected.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct BadBody {
    /// The status of the answer.
    pub status: StatusCode,
    /// What is wrong.
    pub message: String,
}

impl BadBody {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    fn unread(status: StatusCode, why: &str) -> Self {
        Self::new(status, format!("the body cannot be read: {why}"))
    }
}

impl From<Lost> for BadBody {
    fn from(lost: Lost) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, lost.to_string())
    }
}

/// Waits for a place among the large bodies.
async fn place(client: Client) -> Result<Place, BadBody> {
    let what = "too many large bodies are being read\nhint: ask again later";
    let is_full = |_| BadBody::new(StatusCode::SERVICE_UNAVAILABLE, what);
    timeout(TIME, LARGE.place(client)).await.map_err(is_full)
}

/// Reads a JSON body of this form with at most `most` values, and its size. The content type is ignored, as by other
/// servers. The router bounds the bytes.
///
/// # Errors
/// It does not come in time, is too large, or has another form.
pub async fn read_json<T: DeserializeOwned + Send + 'static>(
    request: Request,
    most: usize,
) -> Result<(T, Size), BadBody> {
    let is_small = request.body().size_hint().upper().is_some_and(|bytes| bytes <= SMALL);
    let client = request.extensions().get().copied().unwrap_or_default();
    let place = if is_small { None } else { Some(place(client).await?) };
    // Not `Bytes`, which holds each piece apart: pieces of a byte take 35 times their bytes.
    let read = timeout(TIME, BytesMut::from_request(request, &())).await.map_err(|_| {
        BadBody::unread(StatusCode::REQUEST_TIMEOUT, &format!("it did not come within {} s", TIME.as_secs()))
    });
    let body = read?.map_err(|error| BadBody::unread(error.status(), &error.body_text()))?;
    let bytes = body.len();
    let parse = move || parse(&body, most);
    let parsed = if bytes > SHORT { aside(Size::new(bytes, None), parse).await? } else { parse() };
    Ok((parsed?, Size::new(bytes, place)))
}

fn parse<T: DeserializeOwned>(body: &[u8], most: usize) -> Result<T, BadBody> {
    let bad = |message| BadBody::new(StatusCode::BAD_REQUEST, message);
    // First: what is parsed takes many times its bytes.
    if !has_at_most(body, most) {
        return Err(bad(format!("the body has more than {most} values\nhint: send less in one request")));
    }
    serde_json::from_slice(body).map_err(|error| bad(format!("the body: {error}")))
}

/// Whether a JSON text has at most `most` values. A field's name counts as one.
fn has_at_most(text: &[u8], most: usize) -> bool {
    // Fewer bytes cannot have more.
    if text.len() / 2 < most {
        return true;
    }
    let (mut count, mut is_text, mut is_escaped, mut is_opened) = (1, false, false, false);
    for byte in text {
        if is_opened && !byte.is_ascii_whitespace() {
            // The first value of a list or an object, which may be empty.
            count += usize::from(!matches!(byte, b']' | b'}'));
            is_opened = false;
        }
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            b',' | b':' if !is_text => count += 1,
            b'[' | b'{' if !is_text => is_opened = true,
            _ => {}
        }
    }
    count <= most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_a_body_are_counted_before_it_is_parsed() {
        for (text, count) in [
            ("1", 1),
            (r#"[1, 2, 3]"#, 4),
            (r#"[[], [ ], {}]"#, 4),
            ("[[[\n{ }]], [\"]\"]]", 6),
            (r#"{"a": {}, "b": {"]": []}}"#, 7),
            (r#"{"a": 1, "b": [2]}"#, 6),
            (r#"["a,b:[{\",,", "\\", ","]"#, 4),
        ] {
            assert!(has_at_most(text.as_bytes(), count), "{text}");
            // Counted whatever the length.
            let long = [text.as_bytes(), &[b' '; 100]].concat();
            assert!(has_at_most(&long, count) && !has_at_most(&long, count - 1), "{text}");
        }
        let values = 2 << 20;
        let list = |zeros: usize| format!("[{}]", vec!["0"; zeros].join(","));
        assert_eq!(parse::<Vec<u8>>(list(values - 1).as_bytes(), values).unwrap().len(), values - 1);
        let refused = parse::<Vec<u8>>(list(values).as_bytes(), values).unwrap_err();
        let says = "the body has more than 2097152 values\nhint: send less in one request";
        assert_eq!((refused.status, refused.message.as_str()), (StatusCode::BAD_REQUEST, says));
        assert_eq!(parse::<Vec<u8>>(list(values).as_bytes(), values + 1).unwrap().len(), values);
    }
}
