//! What HTTP failures and answers say, in a line.

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
