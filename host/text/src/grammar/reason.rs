//! Why the library refuses a grammar, or cannot follow one.

use std::fmt::Display;

/// The most bytes of a reason.
const MOST_BYTES: usize = 500;

/// The error of the library in one line.
pub(super) fn reason(error: &impl Display) -> String {
    let text = format!("{error:#}");
    let mut line = text.lines().next().unwrap_or_default().trim().to_owned();
    if line.len() > MOST_BYTES {
        line.truncate(line.floor_char_boundary(MOST_BYTES));
        line.push('…');
    }
    match line.as_str() {
        "" => "it allows no text".into(),
        // The stop reasons of the library.
        "NoExtensionBias" => "no token may follow".into(),
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_line_that_is_not_long() {
        assert_eq!(reason(&"first\nsecond"), "first");
        assert_eq!(reason(&""), "it allows no text");
        assert_eq!(reason(&"NoExtensionBias"), "no token may follow");
        assert_eq!(reason(&"é".repeat(400)), "é".repeat(250) + "…");
    }
}
