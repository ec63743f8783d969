//! The words and signs of Rust code, without comments, strings and tests.

/// A word, `::`, or any other sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// A name, a keyword or a number.
    Word(String),
    /// `::`
    PathSeparator,
    /// Any other sign.
    Sign(char),
}

impl Token {
    /// The word, if the token is one.
    pub fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Whether the token is this sign.
    pub fn is(&self, sign: char) -> bool {
        *self == Self::Sign(sign)
    }
}

/// The tokens of `code` that are compiled outside of tests.
pub fn tokens(code: &str) -> Vec<Token> {
    without_tests(&all_tokens(code))
}

fn all_tokens(code: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = code;
    while let Some(next) = rest.chars().next() {
        if let Some(skipped) = skipped(rest) {
            rest = &rest[skipped..];
        } else if is_word(next) {
            let end = rest.find(|sign: char| !is_word(sign)).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..end].to_owned()));
            rest = &rest[end..];
        } else if let Some(after) = rest.strip_prefix("::") {
            tokens.push(Token::PathSeparator);
            rest = after;
        } else {
            if !next.is_whitespace() {
                tokens.push(Token::Sign(next));
            }
            rest = &rest[next.len_utf8()..];
        }
    }
    tokens
}

fn is_word(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_'
}

/// The length of the comment, string, character or lifetime that `code` begins
/// with.
fn skipped(code: &str) -> Option<usize> {
    if code.starts_with("//") {
        return Some(code.find('\n').unwrap_or(code.len()));
    }
    if code.starts_with("/*") {
        return Some(block_comment(code));
    }
    if code.starts_with('\'') {
        return Some(quote(code));
    }
    let text = code.trim_start_matches(['b', 'c']);
    if code.len() - text.len() > 1 {
        return None;
    }
    let prefix = code.len() - text.len();
    if let Some(raw) = text.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let end = format!("\"{}", "#".repeat(hashes));
        let inner = raw[hashes..].strip_prefix('"')?;
        let length = inner.find(&end).map_or(inner.len(), |at| at + end.len());
        return Some(prefix + 1 + hashes + 1 + length);
    }
    text.starts_with('"').then(|| prefix + closed(text, '"'))
}

fn block_comment(code: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < code.len() {
        if code[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if code[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += code[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    code.len()
}

/// A character, or a lifetime, of which only the quote is skipped.
fn quote(code: &str) -> usize {
    let mut signs = code.chars().skip(1);
    match (signs.next(), signs.next()) {
        (Some('\\'), _) => closed(code, '\''),
        (Some(sign), Some('\'')) => 2 + sign.len_utf8(),
        _ => 1,
    }
}

/// The length of the text from the first `quote` to the next one that is not
/// escaped by a backslash.
fn closed(code: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, sign) in code.char_indices().skip(1) {
        if sign == quote && !escaped {
            return at + sign.len_utf8();
        }
        escaped = sign == '\\' && !escaped;
    }
    code.len()
}

/// Leaves out items with `#[cfg(test)]`.
fn without_tests(tokens: &[Token]) -> Vec<Token> {
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        match attribute(&tokens[at..]) {
            Some(attribute) if is_of_tests(attribute) => at += attribute.len() + item(&tokens[at + attribute.len()..]),
            Some(attribute) => {
                kept.extend_from_slice(attribute);
                at += attribute.len();
            }
            None => {
                kept.push(tokens[at].clone());
                at += 1;
            }
        }
    }
    kept
}

/// The attribute that `tokens` begin with.
fn attribute(tokens: &[Token]) -> Option<&[Token]> {
    let begins = tokens.first()?.is('#') && tokens.get(1)?.is('[');
    begins.then(|| &tokens[..=group(&tokens[1..])])
}

fn is_of_tests(attribute: &[Token]) -> bool {
    let has = |word: &str| attribute.iter().any(|token| token.word() == Some(word));
    attribute.get(2).and_then(Token::word) == Some("cfg") && has("test") && !has("not")
}

/// The number of tokens of the item that `tokens` begin with: up to its `;` or
/// its block.
fn item(tokens: &[Token]) -> usize {
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            Token::Sign(';') => return at + 1,
            Token::Sign('{') => return at + group(&tokens[at..]),
            Token::Sign('(' | '[') => at += group(&tokens[at..]),
            _ => at += 1,
        }
    }
    at
}

/// The number of tokens of the group in brackets that `tokens` begin with.
fn group(tokens: &[Token]) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Sign('(' | '[' | '{') => depth += 1,
            Token::Sign(')' | ']' | '}') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(code: &str) -> String {
        let tokens = tokens(code);
        tokens.iter().filter_map(Token::word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_texts_and_characters_are_left_out() {
        assert_eq!(words("a // b\nc /* d /* e */ f */ g"), "a c g");
        assert_eq!(words(r##"a "b \" c" d b"e" r"\" f r#"g " h"# i br"j" k"##), "a d f i k");
        assert_eq!(words(r"a 'b' c '\'' d '\\' e &'f g"), "a c d e f g");
        assert_eq!(words("crate_bar r bc\"x\""), "crate_bar r bc");
    }

    #[test]
    fn tests_are_left_out() {
        assert_eq!(words("#[cfg(test)] use a::{b, c}; d"), "d");
        assert_eq!(words("#[cfg(test)] #[allow(x)] fn a([b; 2]: c) -> d { { e } } f"), "f");
        assert_eq!(words("#[cfg(all(test, unix))] mod a { b } #[cfg(not(test))] mod c;"), "cfg not test mod c");
        assert_eq!(words("#[derive(Debug)] struct A;"), "derive Debug struct A");
    }
}
