//! Calls between tags.

use super::format::THOUGHT_END;
use super::json;
use super::parsed::{Broken, Section};

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";

/// `<tool_call>JSON</tool_call>`; the reply may end before or within the last closing tag.
pub(super) fn section(text: &str) -> Option<Section> {
    let body = text.strip_prefix(OPEN)?;
    let read = match json::after_value(body) {
        Ok(rest) => {
            let next = rest.trim_start();
            let closed = next.strip_prefix(CLOSE).or_else(|| CLOSE.starts_with(next).then_some(""));
            if let Some(after) = closed {
                let calls = json::call(&body[..body.len() - rest.len()]).map(|call| vec![call]);
                return Some(Section { calls, ..Section::whole(text, after, Vec::new()) });
            }
            text.len() - next.len()
        }
        Err(error) if json::is_cut_off(body, &error) => text.len(),
        Err(error) => OPEN.len() + json::before(body, &error),
    };
    let is_cut_off = read == text.len();
    let section = Section::broken(text, Broken { why: String::new(), is_cut_off, read }, CLOSE, THOUGHT_END);
    let body = &text[OPEN.len()..section.length];
    let body = body.strip_suffix(CLOSE).filter(|_| !is_cut_off).unwrap_or(body);
    let calls = json::call(body.trim()).map(|call| vec![call]);
    Some(Section { calls, ..section })
}
