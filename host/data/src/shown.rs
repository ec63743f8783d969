//! Makes text from elsewhere safe to show. Text of a plugin, a model or a row
//! must not move the cursor, recolour the screen, reorder the letters around it
//! or look like a line of the host.

use std::fmt::{self, Display, Formatter, Write};

/// The indentation of all lines of a [`ShownLines`] but the first.
const INDENT: &str = "  ";

/// A text in one line. Every character that is not visible ([`is_seen`]) is
/// escaped as in a Rust string, line breaks and tabs included. Escaping a text
/// twice changes nothing.
#[derive(Debug, Clone, Copy)]
pub struct Shown<T>(pub T);

/// A text with its lines and tabs; all other characters are escaped as in
/// [`Shown`]. Lines after the first are indented, so that they cannot look like
/// lines of the host, which begin at the margin.
#[derive(Debug, Clone, Copy)]
pub struct ShownLines<T>(pub T);

/// Whether a character is visible and changes nothing around it. Control
/// characters (C0 and C1), line and paragraph separators, controls of writing
/// direction and characters without width are not.
pub fn is_seen(c: char) -> bool {
    // Default_Ignorable_Code_Point of Unicode 17 without the variation selectors that emoji need (U+FE00 to U+FE0F),
    // with the general categories Cc, Zl and Zp, and the interlinear annotations (U+FFF9 to U+FFFB).
    !matches!(
        c,
        '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

impl<T: Display> Display for Shown<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(Line(f), "{}", self.0)
    }
}

impl<T: Display> Display for ShownLines<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(Lines { out: f, new_line: false }, "{}", self.0)
    }
}

struct Line<'a, 'f>(&'a mut Formatter<'f>);

impl Write for Line<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|c| self.write_char(c))
    }

    fn write_char(&mut self, c: char) -> fmt::Result {
        if is_seen(c) { self.0.write_char(c) } else { write!(self.0, "{}", c.escape_default()) }
    }
}

struct Lines<'a, 'f> {
    out: &'a mut Formatter<'f>,
    /// Whether the last character was a line break.
    new_line: bool,
}

impl Write for Lines<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|c| self.write_char(c))
    }

    fn write_char(&mut self, c: char) -> fmt::Result {
        // An empty line is not indented.
        if self.new_line && c != '\n' {
            self.out.write_str(INDENT)?;
        }
        self.new_line = c == '\n';
        match c {
            '\n' | '\t' => self.out.write_char(c),
            c => Line(self.out).write_char(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Letters, marks, digits, symbols, and emoji with a variation selector.
    const SEEN: &str = "plain, é e\u{301} ß Ω ж ש م क्षि ไทย 漢字 \\frac{1}{2} C:\\x “” → ✔\u{fe0f} 🙂 \u{a0}";

    #[test]
    fn what_is_seen_stays() {
        assert_eq!(Shown(SEEN).to_string(), SEEN);
        assert_eq!(ShownLines(SEEN).to_string(), SEEN);
        assert!((' '..='~').all(is_seen));
    }

    #[test]
    fn what_acts_on_a_terminal_is_escaped() {
        for (text, shown) in [
            ("\u{1b}[2J\u{1b}]0;title\u{7}", r"\u{1b}[2J\u{1b}]0;title\u{7}"),
            ("\u{9b}31mred\u{9d}0;t\u{9c}\u{7f}", r"\u{9b}31mred\u{9d}0;t\u{9c}\u{7f}"),
            ("100 %\r  0 %\u{8}\u{8}\0", r"100 %\r  0 %\u{8}\u{8}\u{0}"),
            (
                "safe\u{202e}exe.txt\u{2066}\u{2069}\u{200e}\u{61c}",
                r"safe\u{202e}exe.txt\u{2066}\u{2069}\u{200e}\u{61c}",
            ),
            ("a\u{200b}b\u{200d}c\u{2060}d\u{feff}e\u{ad}f", r"a\u{200b}b\u{200d}c\u{2060}d\u{feff}e\u{ad}f"),
            ("a\u{e0041}\u{e0100}\u{3164}", r"a\u{e0041}\u{e0100}\u{3164}"),
            ("a\u{2028}b\u{2029}c\u{85}d", r"a\u{2028}b\u{2029}c\u{85}d"),
        ] {
            assert_eq!(Shown(text).to_string(), shown);
            assert_eq!(ShownLines(text).to_string(), shown);
            // Escaping twice changes nothing.
            assert_eq!(Shown(Shown(text)).to_string(), shown);
        }
    }

    #[test]
    fn a_line_is_one_line() {
        assert_eq!(Shown("a\nerror: b\tc").to_string(), r"a\nerror: b\tc");
        assert_eq!(Shown(format_args!("{}{}", 'x', "\n")).to_string(), r"x\n");
    }

    #[test]
    fn lines_after_the_first_are_indented() {
        let text = "Traceback:\n  File \"x\", line 1\n\n\ty\nerror: all is lost\r\nhint: no\n";
        let shown = "Traceback:\n    File \"x\", line 1\n\n  \ty\n  error: all is lost\\r\n  hint: no\n";
        assert_eq!(ShownLines(text).to_string(), shown);
        assert_eq!(ShownLines(format_args!("{}{}", "a\n", "b")).to_string(), "a\n  b");
    }
}
