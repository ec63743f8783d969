//! Keys, which nothing that a server answers may show: servers repeat what they received, in errors above all.

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Shorter keys are not looked for: they may be a part of other texts.
const LEAST_BYTES: usize = 6;
/// The most backslashes before an escaped character: JSON in JSON in JSON has 4.
const BACKSLASHES: usize = 4;
/// How often `%` may be written as `%25`.
const PERCENTS: usize = 2;
/// The words by which the name of a variable or of a parameter is that of a key.
const KEY_WORDS: [&str; 6] = ["key", "token", "secret", "password", "auth", "signature"];

/// Whether a variable or a parameter of this name looks like a key.
pub fn names_a_key(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    KEY_WORDS.iter().any(|word| name.contains(*word))
}

/// The bytes with `shown` in place of each `secret`: as it is, with characters escaped as in JSON or a URL, in
/// hexadecimal or in Base64.
pub fn without_secret(bytes: Vec<u8>, secret: &[u8], shown: &str) -> Vec<u8> {
    replaced(bytes, secret, shown, false)
}

/// The same for bytes that may end within a secret.
pub fn without_cut_secret(bytes: Vec<u8>, secret: &[u8], shown: &str) -> Vec<u8> {
    replaced(bytes, secret, shown, true)
}

fn replaced(bytes: Vec<u8>, secret: &[u8], shown: &str, is_cut: bool) -> Vec<u8> {
    if secret.len() < LEAST_BYTES {
        return bytes;
    }
    let forms = Forms::of(secret);
    let (mut clean, mut kept, mut at) = (Vec::new(), 0, 0);
    while at < bytes.len() {
        match forms.at(&bytes[at..], is_cut) {
            Some(length) => {
                clean.extend_from_slice(&bytes[kept..at]);
                clean.extend_from_slice(shown.as_bytes());
                at += length;
                kept = at;
            }
            None => at += 1,
        }
    }
    if kept == 0 {
        return bytes;
    }
    clean.extend_from_slice(&bytes[kept..]);
    clean
}

/// How a secret may be written.
struct Forms {
    texts: Vec<Vec<u8>>,
    /// The bytes with which one of them may begin.
    first: [bool; 256],
}

impl Forms {
    fn of(secret: &[u8]) -> Self {
        let hexadecimal: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut texts = vec![secret.to_vec(), hexadecimal.to_ascii_uppercase().into(), hexadecimal.into()];
        for before in 0..3 {
            texts.extend([STANDARD_NO_PAD, URL_SAFE_NO_PAD].map(|engine| in_base64(&engine, secret, before)));
        }
        let mut first = [false; 256];
        for byte in texts.iter().filter_map(|text| text.first()).chain(br"\%") {
            first[usize::from(*byte)] = true;
        }
        Self { texts, first }
    }

    /// The length of the secret with which these bytes begin.
    fn at(&self, bytes: &[u8], is_cut: bool) -> Option<usize> {
        let may_begin = bytes.first().is_some_and(|byte| self.first[usize::from(*byte)]);
        may_begin.then(|| self.texts.iter().find_map(|text| length(text, bytes, is_cut))).flatten()
    }
}

/// The characters of Base64 that a secret alone decides, after `before` other bytes.
fn in_base64(engine: &GeneralPurpose, secret: &[u8], before: usize) -> Vec<u8> {
    let whole = engine.encode([&[0; 3][..before], secret].concat());
    // A character has 6 bits.
    let (start, end) = ((before * 8).div_ceil(6), (before + secret.len()) * 8 / 6);
    whole.as_bytes()[start..end].to_vec()
}

/// The number of bytes that `text` takes at the beginning of `bytes`, with escaped characters or without. If the bytes
/// are cut within the text, all of them.
fn length(text: &[u8], bytes: &[u8], is_cut: bool) -> Option<usize> {
    let (first, others) = text.split_first()?;
    // A backslash or `%` of the text may also begin an escape, so there may be several ways to read the bytes.
    let mut ends: Vec<usize> = lengths(*first, bytes).collect();
    for (place, byte) in others.iter().enumerate() {
        let may_end = is_cut && place + 1 >= LEAST_BYTES;
        if may_end && ends.iter().any(|end| is_within_escape(&bytes[*end..])) {
            return Some(bytes.len());
        }
        ends = ends.iter().flat_map(|end| lengths(*byte, &bytes[*end..]).map(move |length| end + length)).collect();
        if ends.is_empty() {
            return None;
        }
        ends.sort_unstable();
        ends.dedup();
    }
    ends.into_iter().max()
}

/// The numbers of bytes that a character may take at the beginning of `bytes`: `/` may be `/`, `\/`, `\u002f`, `\x2f` or
/// `%2F`.
fn lengths(byte: u8, bytes: &[u8]) -> impl Iterator<Item = usize> {
    let plain = bytes.starts_with(&[byte]).then_some(1);
    plain.into_iter().chain(after_backslashes(byte, bytes)).chain(after_percents(byte, bytes))
}

fn after_backslashes(byte: u8, bytes: &[u8]) -> impl Iterator<Item = usize> {
    let backslashes = backslashes(bytes);
    let rest = &bytes[backslashes..];
    let escaped = match rest.first() {
        _ if backslashes == 0 => None,
        Some(b'u') if is_code(byte, rest.get(1..5)) => Some(5),
        Some(b'x') if is_code(byte, rest.get(1..3)) => Some(3),
        Some(letter) if short_escape(byte) == Some(*letter) => Some(1),
        Some(first) => (*first == byte && !byte.is_ascii_alphanumeric()).then_some(1),
        None => None,
    };
    // A backslash is escaped by others.
    let own = (2..=backslashes).filter(move |_| byte == b'\\');
    escaped.map(|length| backslashes + length).into_iter().chain(own)
}

fn after_percents(byte: u8, bytes: &[u8]) -> impl Iterator<Item = usize> {
    let again = bytes.starts_with(b"%").then(|| 0..=percents(bytes));
    // A `%25` may be the percent sign itself, and its last digits those of the character.
    let codes = again.into_iter().flatten().map(|again| 1 + 2 * again);
    codes.filter(move |at| is_code(byte, bytes.get(*at..*at + 2))).map(|at| at + 2)
}

/// Whether the hexadecimal digits are the code of a character.
fn is_code(byte: u8, digits: Option<&[u8]>) -> bool {
    let code = digits.and_then(|digits| u32::from_str_radix(str::from_utf8(digits).ok()?, 16).ok());
    code == Some(byte.into())
}

/// The letter that JSON writes after a backslash for a character.
fn short_escape(byte: u8) -> Option<u8> {
    match byte {
        b'\n' => Some(b'n'),
        b'\r' => Some(b'r'),
        b'\t' => Some(b't'),
        0x08 => Some(b'b'),
        0x0c => Some(b'f'),
        _ => None,
    }
}

/// Whether the bytes are the beginning of an escape, or nothing.
fn is_within_escape(bytes: &[u8]) -> bool {
    let are_begun = |digits: &[u8], whole: usize| digits.len() < whole && digits.iter().all(u8::is_ascii_hexdigit);
    let backslashes = backslashes(bytes);
    match (backslashes, &bytes[backslashes..]) {
        (_, []) => true,
        (0, [b'%', ..]) => are_begun(&bytes[1 + 2 * percents(bytes)..], 2),
        (1.., [b'u', digits @ ..]) => are_begun(digits, 4),
        (1.., [b'x', digits @ ..]) => are_begun(digits, 2),
        _ => false,
    }
}

/// The number of backslashes with which the bytes begin.
fn backslashes(bytes: &[u8]) -> usize {
    bytes.iter().take(BACKSLASHES).take_while(|byte| **byte == b'\\').count()
}

/// How often `25` follows the `%` with which the bytes begin.
fn percents(bytes: &[u8]) -> usize {
    (0..PERCENTS).take_while(|time| bytes[1 + 2 * time..].starts_with(b"25")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-s3cret/42+";

    fn shown(text: &str) -> String {
        String::from_utf8(without_secret(text.into(), KEY.as_bytes(), "$KEY")).unwrap()
    }

    #[test]
    fn a_key_is_removed_however_it_is_written() {
        for text in [
            KEY,
            r"sk-s3cret\/42+",
            r"\u0073k\u002ds3cret\u002F42\u002b",
            r"sk\\u002ds3cret\\/42\\u002B",
            r"sk\x2ds3cret/42+",
            "sk-s3cret%2F42%2b",
            "%73%6b-s3cret%252f42%25252B",
            "736b2d7333637265742f34322b",
            "736B2D7333637265742F34322B",
        ] {
            assert_eq!(
                shown(&format!(r#"{{"a": "{text}", "b": "{text}"}}"#)),
                r#"{"a": "$KEY", "b": "$KEY"}"#,
                "{text}"
            );
        }
        for before in ["", "a", "ab", "Bearer ", "user:"] {
            for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
                let text = engine.encode(format!("{before}{KEY}, please"));
                let found = shown(&text);
                assert!(found.contains("$KEY") && found.len() < text.len() - 10, "{text} {found}");
            }
        }
    }

    #[test]
    fn a_key_may_be_cut() {
        for (text, shown) in [
            ("sk-s3cre", "$KEY"),
            (r"\u0073k-s3c", "$KEY"),
            (r"sk-s3cret\", "$KEY"),
            (r"sk-s3cret\u", "$KEY"),
            (r"sk-s3cret\u00", "$KEY"),
            (r"sk-s3cret\\u002", "$KEY"),
            (r"sk-s3cret\x2", "$KEY"),
            ("sk-s3cret%", "$KEY"),
            ("sk-s3cret%2", "$KEY"),
            ("sk-s3cret%25", "$KEY"),
            ("sk-s3cret%252", "$KEY"),
            ("sk-s3", "sk-s3"),
            (r"sk-s3\u00", r"sk-s3\u00"),
            ("sk-s3c.", "sk-s3c."),
            (r"sk-s3cret\n", r"sk-s3cret\n"),
            (r"sk-s3cret\u00.", r"sk-s3cret\u00."),
            ("sk-s3cret%2.", "sk-s3cret%2."),
        ] {
            let text = format!("the key {text}");
            let found = without_cut_secret(text.clone().into(), KEY.as_bytes(), "$KEY");
            assert_eq!(String::from_utf8(found).unwrap(), format!("the key {shown}"));
            assert_eq!(without_secret(text.clone().into(), KEY.as_bytes(), "$KEY"), text.as_bytes());
        }
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        for text in
            ["", "sk-s3", "sk-s3cret", "sk-s3cret/43+", r"\sk-s3", r"\\\\\\\u0073", "%", "%2", "%25252573", r"\u00"]
        {
            let text = format!("{text}.");
            assert_eq!(shown(&text), text);
        }
        assert_eq!(without_secret(b"none of it".to_vec(), b"none", "$KEY"), b"none of it");
        let backslash = without_secret(br"a\\b\\c-12 a\b\c-12".to_vec(), br"a\b\c-12", "$KEY");
        assert_eq!(backslash, b"$KEY $KEY");
    }

    #[test]
    fn a_key_may_have_characters_that_are_escaped() {
        let cases: [(&str, &[&str]); 4] = [
            // Two backslashes beside each other.
            (r"ab\\cdefg", &[r"ab\\cdefg", r"ab\\\\cdefg", r"ab\u005c\u005ccdefg", "ab%5C%5ccdefg"]),
            (r"abcdef\", &[r"abcdef\", r"abcdef\\"]),
            (
                "--BEGIN KEY--\nMII/\"\t\r\u{8}\u{c}\n--END KEY--\n",
                &[
                    "--BEGIN KEY--\nMII/\"\t\r\u{8}\u{c}\n--END KEY--\n",
                    r#"--BEGIN KEY--\nMII\/\"\t\r\b\f\n--END KEY--\n"#,
                    r#"--BEGIN KEY--\\nMII\\/\\\"\\t\\r\\b\\f\\n--END KEY--\\n"#,
                ],
            ),
            (
                "s3cret%42%key",
                &["s3cret%42%key", "s3cret%2542%25key", "s3cret%252542%2525key", "s3cret%25252542%25key"],
            ),
        ];
        for (key, texts) in cases {
            for text in texts {
                let found = without_secret(format!("the key {text}, yes").into(), key.as_bytes(), "$KEY");
                assert_eq!(String::from_utf8(found).unwrap(), "the key $KEY, yes", "{text}");
            }
        }
        let others = r"ab\cdefg ab\\dcefg abcdef MIInMII";
        assert_eq!(without_secret(others.into(), br"ab\\cdefg", "$KEY"), others.as_bytes());
    }

    #[test]
    fn names_tell_keys() {
        assert!(["JUDGE_KEY", "apiKey", "access_token", "X-Auth", "sasSignature"].into_iter().all(names_a_key));
        assert!(!["metric", "APP_ENV", "page", ""].into_iter().any(names_a_key));
    }
}
