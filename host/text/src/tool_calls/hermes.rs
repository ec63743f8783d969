//! Calls between tags.

use super::json;
use super::parsed::Section;

pub(super) const OPEN: &str = "<tool_call>";
pub(super) const CLOSE: &str = "</tool_call>";

/// `<tool_call>JSON</tool_call>`; the reply may end before or within the last closing tag.
pub(super) fn section(text: &str) -> Option<Section> {
    let body = text.strip_prefix(OPEN)?;
    let length = match json::after_value(body) {
        Ok(rest) => {
            let next = rest.trim_start();
            let closed = next.strip_prefix(CLOSE).or_else(|| CLOSE.starts_with(next).then_some(""));
            closed.map(|after| (body.len() - rest.len(), text.len() - after.len()))
        }
        Err(error) => json::is_cut_off(body, &error).then_some((body.len(), text.len())),
    };
    let (body, length, is_delimited) = match length {
        Some((end, length)) => (&body[..end], length, true),
        None => {
            let (body, length) = between_tags(text);
            (body, length, false)
        }
    };
    Some(Section { length, calls: json::call(body.trim()).map(|call| vec![call]), is_delimited })
}

/// The text up to the next closing tag, and the bytes with both tags: the extent of a call whose own form does not say
/// where it ends.
pub(super) fn between_tags(text: &str) -> (&str, usize) {
    let body = &text[OPEN.len()..];
    let (body, next) = body.split_once(CLOSE).unwrap_or((body, ""));
    (body, text.len() - next.len())
}
