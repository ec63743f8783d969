//! Compares an answer with the expected one.

use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The tolerances of numpy's `allclose`, which graders of contests use.
const RELATIVE: f64 = 1e-5;
const ABSOLUTE: f64 = 1e-8;

/// Whether two outputs have the same words in the same lines. Blank lines and
/// the white space around words do not count, and numbers are compared as such.
pub(crate) fn same_output(expected: &str, printed: &str) -> bool {
    let mut printed = lines(printed);
    lines(expected).all(|expected| printed.next().is_some_and(|line| same_line(expected, line)))
        && printed.next().is_none()
}

/// Whether `printed` is the beginning of an output that is the same as
/// `expected`. It may end in the middle of a word.
pub(crate) fn begins_output(expected: &str, printed: &str) -> bool {
    let whole = printed.rfind(char::is_whitespace).map_or("", |end| &printed[..end]);
    let (mut expected, mut printed) = (lines(expected), lines(whole).peekable());
    while let Some(line) = printed.next() {
        let Some(expected) = expected.next() else { return false };
        let same = if printed.peek().is_some() { same_line } else { begins_line };
        if !same(expected, line) {
            return false;
        }
    }
    true
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim().is_empty())
}

fn same_line(expected: &str, printed: &str) -> bool {
    let mut printed = printed.split_whitespace();
    expected.split_whitespace().all(|expected| printed.next().is_some_and(|word| same_word(expected, word)))
        && printed.next().is_none()
}

fn begins_line(expected: &str, printed: &str) -> bool {
    let mut expected = expected.split_whitespace();
    printed.split_whitespace().all(|word| expected.next().is_some_and(|expected| same_word(expected, word)))
}

fn same_word(expected: &str, word: &str) -> bool {
    expected == word || same_number(expected, word)
}

/// Whether two values are the same as JSON. It goes only as deep as `expected`:
/// the answer may be deeper than the stack.
pub(crate) fn same_value(expected: &RawValue, answer: &RawValue) -> bool {
    let (expected, answer) = (expected.get(), answer.get());
    match expected.as_bytes().first() {
        Some(b'[') => match (list(expected), list(answer)) {
            (Some(expected), Some(answer)) => {
                expected.len() == answer.len()
                    && expected.iter().zip(answer).all(|(expected, answer)| same_value(expected, answer))
            }
            _ => false,
        },
        Some(b'{') => match (map(expected), map(answer)) {
            (Some(expected), Some(answer)) => {
                expected.len() == answer.len()
                    && expected
                        .iter()
                        .all(|(key, expected)| answer.get(key).is_some_and(|answer| same_value(expected, answer)))
            }
            _ => false,
        },
        Some(b'"') => {
            let text = |json| serde_json::from_str::<String>(json).ok();
            // A text with half of a surrogate pair cannot be decoded.
            expected == answer || text(expected).is_some_and(|expected| text(answer) == Some(expected))
        }
        _ => expected == answer || same_number(expected, answer),
    }
}

fn list(json: &str) -> Option<Vec<&RawValue>> {
    serde_json::from_str(json).ok()
}

fn map(json: &str) -> Option<BTreeMap<String, &RawValue>> {
    serde_json::from_str(json).ok()
}

/// Whether both are the same number. A whole number must be equal to the last
/// digit; a fraction may differ a little.
fn same_number(expected: &str, other: &str) -> bool {
    let (Some(expected_form), Some(other_form)) = (form(expected), form(other)) else { return false };
    let (Ok(expected_value), Ok(value)) = (expected.parse::<f64>(), other.parse::<f64>()) else { return false };
    match (expected_form, other_form) {
        (Form::Whole, Form::Whole) => expected == other,
        // Beyond this, not every whole number is an f64.
        (Form::Whole, Form::Fraction) => value == expected_value && value.abs() < 9e15,
        (Form::Fraction, _) => (value - expected_value).abs() <= ABSOLUTE + RELATIVE * expected_value.abs(),
    }
}

enum Form {
    Whole,
    Fraction,
}

/// The form of a number as JSON writes it; `0101`, `inf` and `1_0` are not
/// numbers.
fn form(text: &str) -> Option<Form> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let whole = digits.bytes().take_while(u8::is_ascii_digit).count();
    if whole == 0 || (whole > 1 && digits.starts_with('0')) {
        return None;
    }
    let rest = &digits[whole..];
    if rest.is_empty() {
        return Some(Form::Whole);
    }
    let number = rest.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    (number && text.parse::<f64>().is_ok_and(f64::is_finite)).then_some(Form::Fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(expected: &str, answer: &str) -> bool {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        same_value(&raw(expected), &raw(answer))
    }

    #[test]
    fn white_space_and_blank_lines_do_not_count() {
        assert!(same_output("1 2\n3\n", "1  2 \r\n\n3"));
        assert!(same_output("", "\n"));
        for printed in ["1 2 3", "1\n2\n3", "1 2\n3\n4", "1 2", "1 2\n3 3", "3\n1 2", ""] {
            assert!(!same_output("1 2\n3", printed), "{printed:?}");
        }
    }

    #[test]
    fn whole_numbers_are_exact_and_fractions_near() {
        assert!(same_output("0.333333", "0.33333333"));
        assert!(same_output("2.0", "2"));
        assert!(same_output("2", "2.0"));
        assert!(same_output("1e-7", "0.0000001"));
        for (expected, printed) in [
            ("1000000007", "1000000008"),
            ("2", "2.000001"),
            ("0.333333", "0.3334"),
            ("0101", "101"),
            ("9007199254740993", "9007199254740992.0"),
            ("nan", "inf"),
            ("YES", "Yes"),
        ] {
            assert!(!same_output(expected, printed), "{expected} {printed}");
        }
    }

    #[test]
    fn values_are_compared_as_json() {
        assert!(value(r#""\ud800""#, r#""\ud800""#));
        assert!(value(r#"{"a": [1, 2.5, null], "b": "é"}"#, r#"{"b":"\u00e9","a":[1,2.5000001,null]}"#));
        for (expected, answer) in [
            ("[1,2]", "[2,1]"),
            ("[1,2]", "[1,2,3]"),
            ("[]", "{}"),
            ("\"1\"", "1"),
            ("1", "\"1\""),
            ("true", "1"),
            ("null", "0"),
            ("{}", "{\"a\":1}"),
            ("[[1]]", "[1]"),
            (r#""\ud800""#, "1"),
            (r#""\ud800""#, r#""\udfff""#),
        ] {
            assert!(!value(expected, answer), "{expected} {answer}");
        }
    }

    #[test]
    fn an_answer_may_be_deeper_than_a_stack() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(
            !serde_json::from_str::<&RawValue>(&deep)
                .is_ok_and(|deep| { same_value(&RawValue::from_string("[[1]]".into()).unwrap(), deep) })
        );
    }
}
