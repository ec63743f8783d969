//! Finds the answer in a response. Every SDK has these functions with the same
//! results, so that a reward can be rewritten in another language and keep its
//! verdicts.

use std::iter;

/// The last number in `text`: `-1,234.5e6`, `$5`, `.5`; a `−` (U+2212) is a
/// minus too. `None` if there is no number, or it is too large for a float.
///
/// Only the number itself is read: `1/2` gives 2, `50%` gives 50.
pub fn last_number(text: &str) -> Option<f64> {
    let mut last = None;
    let mut at = 0;
    while at < text.len() {
        match number_at(text, at) {
            Some(end) => {
                last = Some(&text[at..end]);
                at = end;
            }
            None => at += text[at..].chars().next().map_or(1, char::len_utf8),
        }
    }
    let digits: String = last?.chars().filter(|c| !matches!(c, ',' | '$')).collect();
    digits.replace('−', "-").parse().ok().filter(|number: &f64| number.is_finite())
}

/// The end of the longest number that begins at `start`.
fn number_at(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let before = start.checked_sub(1).map_or(0, byte);
    let mut at = start;
    let sign = match text[at..].chars().next()? {
        sign @ ('-' | '−') if !before.is_ascii_alphanumeric() && !matches!(before, b')' | b']' | b'}') => {
            at += sign.len_utf8();
            true
        }
        _ => false,
    };
    if sign && byte(at) == b'$' {
        at += 1;
    }
    let whole = digits(bytes, at);
    let leading_point = sign || !(before.is_ascii_alphanumeric() || before == b'.');
    if whole == 0 && !(leading_point && byte(at) == b'.' && byte(at + 1).is_ascii_digit()) {
        return None;
    }
    at += whole;
    if (1..=3).contains(&whole) {
        let group = |at: &usize| byte(*at) == b',' && digits(bytes, at + 1) == 3;
        // Groups are read as long as each has exactly three digits.
        at = iter::successors(Some(at), |at| group(at).then_some(at + 4)).last().unwrap_or(at);
    }
    if byte(at) == b'.' && byte(at + 1).is_ascii_digit() {
        at += 1 + digits(bytes, at + 1);
    }
    if matches!(byte(at), b'e' | b'E') {
        let sign = usize::from(matches!(byte(at + 1), b'+' | b'-'));
        match digits(bytes, at + 1 + sign) {
            0 => {}
            exponent => at += 1 + sign + exponent,
        }
    }
    Some(at)
}

/// How many digits there are from `at`.
fn digits(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..).map_or(0, |rest| rest.iter().take_while(|byte| byte.is_ascii_digit()).count())
}

/// The trimmed contents of the last complete `\boxed{…}` in `text`, with its
/// braces balanced; escaped braces do not count.
pub fn last_boxed(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    // The places behind open braces, and whether `\boxed` is before them.
    let mut open: Vec<(usize, bool)> = Vec::new();
    let mut last: Option<(usize, usize)> = None;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            // The character behind it may have several bytes; none of them is a brace or a backslash.
            b'\\' => at += 1,
            b'{' => open.push((at + 1, text[..at].trim_end().ends_with("\\boxed"))),
            b'}' => {
                if let Some((start, true)) = open.pop()
                    && last.is_none_or(|(latest, _)| start > latest)
                {
                    last = Some((start, at));
                }
            }
            _ => {}
        }
        at += 1;
    }
    last.map(|(start, end)| text[start..end].trim())
}

/// The trimmed text of the last `<name>…</name>` in `text`; tags are exact.
pub fn last_tag<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    if name.is_empty() {
        return None;
    }
    let close = format!("</{name}>");
    let open = format!("<{name}>");
    let start = text[..text.rfind(&close)?].rfind(&open)? + open.len();
    let rest = &text[start..];
    Some(rest[..rest.find(&close)?].trim())
}

/// The text after the last `prefix` in `text`, up to the end of its line,
/// trimmed; it may be empty.
pub fn after_last<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    if prefix.is_empty() {
        return None;
    }
    let (_, rest) = text.rsplit_once(prefix)?;
    Some(rest.split('\n').next().unwrap_or_default().trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn the_answers_are_those_of_every_sdk() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/answers.jsonl");
        let rows = std::fs::read_to_string(path).unwrap();
        assert!(rows.lines().count() >= 40);
        for row in rows.lines() {
            let row: Value = serde_json::from_str(row).unwrap();
            let text = |key: &str| row[key].as_str().unwrap();
            let found = match text("function") {
                "last_number" => last_number(text("text")).map(Value::from),
                "last_boxed" => last_boxed(text("text")).map(Value::from),
                "last_tag" => last_tag(text("text"), text("argument")).map(Value::from),
                "after_last" => after_last(text("text"), text("argument")).map(Value::from),
                other => panic!("there is no function {other}"),
            };
            let expected = row["expect"].as_f64().map_or(row["expect"].clone(), Value::from);
            assert_eq!(found.unwrap_or(json!(null)), expected, "{row}");
        }
    }
}
