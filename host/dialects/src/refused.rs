//! Why a request has no answer, before a dialect writes it.

use axum::http::StatusCode;
use gavel_http::{BadBody, Lost};
use serde_json::Value;

/// The most bytes of a message, which may quote a request.
const MESSAGE: usize = 2000;

/// An error that a client gets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refused {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    /// The field that is wrong, by the dialect's name.
    pub(crate) param: Option<String>,
}

impl Refused {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: shortened(message.into()), param: None }
    }

    /// A field that is wrong; `what` follows its name.
    pub(crate) fn field(param: impl Into<String>, what: impl AsRef<str>) -> Self {
        let param = shortened(param.into());
        let message = format!("`{param}`{}", what.as_ref());
        Self { param: Some(param), ..Self::new(StatusCode::BAD_REQUEST, message) }
    }

    /// A field that is not supported.
    pub(crate) fn unsupported(param: impl Into<String>, hint: &str) -> Self {
        let hint = if hint.is_empty() { String::new() } else { format!("\nhint: {hint}") };
        Self::field(param, format!(" is not supported{hint}"))
    }

    /// What `/v1/chat/completions` answered instead of a completion. `names` are its fields and what the dialect calls
    /// them.
    pub(crate) fn of_chat(status: StatusCode, body: &Value, names: &[(&str, &str)]) -> Self {
        let error = &body["error"];
        // Some servers write the error as a text.
        let message = error["message"].as_str().or(error.as_str()).unwrap_or("the model gave no answer");
        let mut message = message.to_owned();
        for (chat, own) in names {
            message = message.replace(&format!("`{chat}`"), &format!("`{own}`"));
        }
        let own = |param: &str| names.iter().find(|(chat, _)| *chat == param).map_or(param, |(_, own)| own).to_owned();
        Self { param: error["param"].as_str().map(own), ..Self::new(status, message) }
    }

    /// An answer of `/v1/chat/completions` that is none.
    pub(crate) fn no_answer(what: &str) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, format!("the answer of the model {what}"))
    }
}

impl From<BadBody> for Refused {
    fn from(BadBody { status, message }: BadBody) -> Self {
        Self::new(status, message)
    }
}

impl From<Lost> for Refused {
    fn from(lost: Lost) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, lost.to_string())
    }
}

/// The beginning of a text that is too long.
fn shortened(mut text: String) -> String {
    if text.len() > MESSAGE {
        text.truncate(text.floor_char_boundary(MESSAGE));
        text.push('…');
        text.shrink_to_fit();
    }
    text
}
