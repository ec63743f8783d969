//! Errors as the OpenAI API writes them.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use gavel_http::{BadBody, Lost};
use gavel_policy::PolicyError;
use gavel_rollout::RolloutError;
use gavel_text::TextError;
use serde_json::{Value, json};

/// The most bytes of a message, which may quote a request.
const MESSAGE: usize = 2000;

/// An error as a client gets it.
#[derive(Debug, Clone)]
pub struct ApiError {
    status: StatusCode,
    message: String,
    /// The field that is wrong.
    param: Option<&'static str>,
    /// A name by which programs know it.
    code: Option<&'static str>,
}

impl ApiError {
    /// An error that programs know by its code.
    pub fn coded(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code: Some(code), ..Self::invalid(message) }
    }

    /// A request that cannot be answered.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, message: shortened(message.into()), param: None, code: None }
    }

    /// The same, with the field that is wrong.
    pub fn field(param: &'static str, message: impl Into<String>) -> Self {
        Self { param: Some(param), ..Self::invalid(message) }
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self { status: StatusCode::FORBIDDEN, ..Self::invalid(message) }
    }

    /// A path that does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, ..Self::invalid(message) }
    }

    /// A path that is asked by another method.
    pub fn method_not_allowed() -> Self {
        let what = "use POST for completions, and GET for everything else";
        Self { status: StatusCode::METHOD_NOT_ALLOWED, ..Self::invalid(what) }
    }

    /// A failure of the server.
    pub fn internal(message: impl Into<String>) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, ..Self::invalid(message) }
    }

    /// A server that does not answer now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self { status: StatusCode::SERVICE_UNAVAILABLE, ..Self::invalid(message) }
    }

    /// The body of the answer.
    pub fn body(&self) -> Value {
        let kind = if self.status.is_client_error() { "invalid_request_error" } else { "server_error" };
        json!({"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}})
    }
}

/// The beginning of a message that is too long.
fn shortened(mut message: String) -> String {
    if message.len() > MESSAGE {
        message.truncate(message.floor_char_boundary(MESSAGE));
        message.push('…');
        message.shrink_to_fit();
    }
    message
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.status, Json(self.body())).into_response()
    }
}

impl From<BadBody> for ApiError {
    fn from(BadBody { status, message }: BadBody) -> Self {
        Self { status, ..Self::invalid(message) }
    }
}

impl From<Lost> for ApiError {
    fn from(lost: Lost) -> Self {
        Self::internal(lost.to_string())
    }
}

impl From<RolloutError> for ApiError {
    fn from(error: RolloutError) -> Self {
        match &error {
            // The request is at fault, not the model.
            RolloutError::Policy(PolicyError::Input(what)) => {
                // The number of the request is the engine's, and means nothing to a client.
                let what = what.split_once(": ").filter(|(start, _)| start.starts_with("request "));
                Self::invalid(what.map_or_else(|| error.to_string(), |(_, what)| what.to_owned()))
            }
            RolloutError::Text(TextError::Template { .. } | TextError::Refused { .. } | TextError::NoTemplate(_)) => {
                Self::field("messages", error.to_string())
            }
            // So is its grammar, where no token may follow.
            RolloutError::Step(step) if matches!(**step, PolicyError::Constraint { .. }) => {
                let what = step.to_string();
                Self::invalid(what.split_once(": ").map_or(what.as_str(), |(_, what)| what))
            }
            RolloutError::Resumed => Self { status: StatusCode::CONFLICT, ..Self::invalid(error.to_string()) },
            RolloutError::Text(TextError::TooManyBytes { .. }) => Self::invalid(error.to_string()),
            RolloutError::Stopped | RolloutError::Device(_) => Self::unavailable(error.to_string()),
            _ => Self::internal(error.to_string()),
        }
    }
}

impl From<TextError> for ApiError {
    fn from(error: TextError) -> Self {
        RolloutError::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_quotes_only_the_beginning_of_a_long_request() {
        let long = ApiError::field("model", "é".repeat(5000)).body();
        assert_eq!(long["error"]["message"], "é".repeat(MESSAGE / 2) + "…");
        assert_eq!(ApiError::invalid("short").body()["error"]["message"], "short");
    }
}
