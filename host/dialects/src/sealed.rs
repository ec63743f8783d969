//! Thoughts that a client does not show, but sends back unread with the history: as `encrypted_content`, as the signature
//! of a thinking block, or as `thoughtSignature`. They are not secret, so they are only encoded.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// What tells them from what other servers signed.
const MARK: &[u8] = b"gavel thought\n";

/// The text that a client sends back.
pub(crate) fn seal(thought: &str) -> String {
    STANDARD.encode([MARK, thought.as_bytes()].concat())
}

/// The thought that [`seal`] wrote.
pub(crate) fn open(sealed: &str) -> Option<String> {
    let bytes = STANDARD.decode(sealed).ok()?;
    String::from_utf8(bytes.strip_prefix(MARK)?.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thought_comes_back_and_what_others_signed_does_not() {
        assert_eq!(open(&seal("2 + 3 = 5 😀")).as_deref(), Some("2 + 3 = 5 😀"));
        assert_eq!(open(&seal("")).as_deref(), Some(""));
        for other in ["", "abc", "EqQBCgIYAhIM", &STANDARD.encode("gavel")] {
            assert_eq!(open(other), None, "{other}");
        }
    }
}
