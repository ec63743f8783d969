//! Tests that are written as C: assertions over calls of the code.
//!
//! C has no part of memory that code cannot change. So a child gets the expressions alone, and answers with their
//! values. What they should be stays here, and is compared here.

use crate::checks::Tests;
use crate::repeat::{Ran, run};
use crate::tester::Tester;
use crate::verdict::{Kind, Tally, Verdict, cut, failure};
use gavel_sdk::Failure;
use serde::Serialize;
use serde_json::Value;

#[derive(Serialize)]
struct Job<'a> {
    code: &'a str,
    test: &'a str,
}

impl Tester {
    /// The verdict of each case.
    ///
    /// # Errors
    /// The tests cannot be run, whatever the code is.
    pub(crate) fn compare(&self, code: &str, tests: &Tests) -> Result<Tally, Failure> {
        if tests.setup.lines().any(|line| !line.trim().is_empty() && !line.trim_start().starts_with("#include")) {
            return Err(Failure::invalid_input("`test_setup_code` of C may only have lines with `#include`"));
        }
        let texts = tests.cases.iter().flatten().take(self.max_tests.get());
        let cases: Vec<Written> = texts
            .enumerate()
            .map(|(number, text)| Written::read(text).map_err(|what| format!("test {}: {what}", number + 1)))
            .collect::<Result<_, _>>()
            .map_err(Failure::invalid_input)?;
        let mut tally = Tally::new(cases.len());
        if code.trim().is_empty() {
            (0..cases.len()).for_each(|at| tally.add(at, Verdict::new(Kind::Error, "no code in the response")));
            return Ok(tally);
        }
        let outputs = run(self.language, cases.len(), |at, _| {
            // Any text can be written as JSON.
            self.job(serde_json::to_string(&Job { code, test: &cases[at].body }).unwrap_or_default(), "")
        });
        for (number, (case, ran)) in cases.iter().zip(outputs).enumerate() {
            let Ran { output, .. } = ran?;
            let verdict =
                failure(&output).unwrap_or_else(|| match case.compare(&String::from_utf8_lossy(&output.stdout)) {
                    Ok(()) => Verdict::new(Kind::Passed, ""),
                    Err(what) => Verdict::new(Kind::Wrong, cut(&what)),
                });
            tally.add(number, verdict);
        }
        Ok(tally)
    }
}

/// A case: what a child runs, and the values that it should answer.
#[derive(Debug, PartialEq)]
pub(crate) struct Written {
    /// Statements in which each assertion is an answer.
    pub(crate) body: String,
    wanted: Vec<Wanted>,
}

/// The value of an expression.
#[derive(Debug, Clone, PartialEq)]
enum Wanted {
    Truth(bool),
    Number(f64),
    Integer(i128),
    Text(String),
    Near(f64, f64),
}

const FORMS: &str = "an assertion has the form `f(x)`, `!f(x)`, `f(x) == 1`, `strcmp(f(x), \"a\") == 0` or \
                     `fabs(f(x) - 0.5) < 1e-6`, or several of these with `&&`";

impl Written {
    /// Reads a case: statements with assertions among them, or a `main` that has them.
    ///
    /// # Errors
    /// An assertion that cannot be compared outside of the child, or none.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.retain(|line| !line.trim_start().starts_with("#include") && line.trim() != "#undef NDEBUG");
        let text = lines.join("\n");
        let text = body(&text)?;
        let (mut rest, mut body, mut wanted) = (text.as_str(), String::new(), Vec::new());
        while let Some(start) = find_word(rest, "assert") {
            let (before, from) = rest.split_at(start);
            body.push_str(before);
            if depth(&body) != 0 {
                return Err("an assertion is within braces, such as a loop's".into());
            }
            let call = from["assert".len()..].trim_start();
            let inner = call.strip_prefix('(').and_then(|inner| closing(inner).map(|end| (inner, end)));
            let (inner, end) = inner.ok_or("an `assert` has no end")?;
            for part in split(&inner[..end], "&&") {
                let (expression, value) = compared(part)?;
                body.push_str(&format!("__answer({expression});"));
                wanted.push(value);
            }
            rest = inner[end + 1..].trim_start().strip_prefix(';').ok_or("an `assert` is not a statement")?;
        }
        body.push_str(rest);
        if wanted.is_empty() {
            return Err("there is no `assert`".into());
        }
        Ok(Self { body, wanted })
    }

    /// Whether the lines of a child are the values, one each; else the first one that is not.
    pub(crate) fn compare(&self, stdout: &str) -> Result<(), String> {
        let answers: Vec<&str> = stdout.lines().collect();
        for (number, wanted) in self.wanted.iter().enumerate() {
            let answer = answers.get(number).ok_or_else(|| format!("there is no value for {wanted:?}"))?;
            if !wanted.is(answer) {
                return Err(format!("expected {wanted:?}, not {answer}"));
            }
        }
        match answers.len() == self.wanted.len() {
            true => Ok(()),
            false => Err("there are more values than assertions".into()),
        }
    }
}

impl Wanted {
    fn is(&self, answer: &str) -> bool {
        let Ok(answer) = serde_json::from_str::<Value>(answer) else { return false };
        let number = match &answer {
            Value::Bool(truth) => Some(f64::from(u8::from(*truth))),
            other => other.as_f64(),
        };
        match self {
            Self::Text(text) => answer.as_str() == Some(text),
            Self::Truth(truth) => number.is_some_and(|number| (number != 0.0) == *truth),
            Self::Number(value) => number == Some(*value),
            Self::Integer(value) => {
                let whole = answer.as_i64().map(i128::from).or_else(|| answer.as_u64().map(i128::from));
                let whole = whole.or_else(|| answer.as_bool().map(i128::from));
                // A double is compared as one.
                whole.map_or(number == Some(*value as f64), |whole| whole == *value)
            }
            Self::Near(value, within) => number.is_some_and(|number| (number - value).abs() < *within),
        }
    }
}

/// The statements of `main`, or all of a text without one.
fn body(text: &str) -> Result<String, String> {
    let Some(start) = find_word(text, "main") else { return Ok(text.to_owned()) };
    let before = text[..start].trim_end();
    let before = before.strip_suffix("int").or_else(|| before.strip_suffix("void")).unwrap_or(before);
    if !before.trim().is_empty() {
        return Err("the test has more than a `main`: functions of its own would run beside the code".into());
    }
    let open = text[start..].find('{').map(|at| start + at).ok_or("the test's `main` has no body")?;
    let close = text.rfind('}').filter(|close| *close > open).ok_or("the test's `main` has no end")?;
    let inner = text[open + 1..close].trim_end();
    Ok(inner.strip_suffix("return 0;").unwrap_or(inner).to_owned())
}

/// An expression, and the value that an assertion wants of it.
fn compared(part: &str) -> Result<(&str, Wanted), String> {
    let part = bare(part);
    let unfit = || format!("`{part}` cannot be compared outside of the code's memory: {FORMS}");
    let sides = split(part, "==");
    if let [left, right] = sides[..] {
        let (left, right) = (bare(left), bare(right));
        if let Some(arguments) = call(left, "strcmp").filter(|_| right == "0") {
            let [a, b] = split(arguments, ",")[..] else { return Err(unfit()) };
            return match (text(a), text(b)) {
                (None, Some(text)) => Ok((bare(a), Wanted::Text(text))),
                (Some(text), None) => Ok((bare(b), Wanted::Text(text))),
                _ => Err(unfit()),
            };
        }
        return match (literal(left), literal(right)) {
            (None, Some(value)) if own(left) => Ok((left, value)),
            (Some(value), None) if own(right) => Ok((right, value)),
            _ => Err(unfit()),
        };
    }
    if let [left, right] = split(part, "<")[..] {
        let inner = call(bare(left), "fabs").or_else(|| call(bare(left), "fabsf")).ok_or_else(unfit)?;
        let within = number(right).ok_or_else(unfit)?;
        let [a, b] = split(inner, "-")[..] else { return Err(unfit()) };
        return match (number(a), number(b)) {
            (None, Some(value)) if own(bare(a)) => Ok((bare(a), Wanted::Near(value, within))),
            _ => Err(unfit()),
        };
    }
    let (expression, truth) = part.strip_prefix('!').map_or((part, true), |rest| (bare(rest), false));
    let name: String = expression.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    match call(expression, &name) {
        Some(_) if own(expression) => Ok((expression, Wanted::Truth(truth))),
        _ => Err(unfit()),
    }
}

/// Whether an expression does not compare by itself: its value would tell that, and not what the code answers.
fn own(expression: &str) -> bool {
    let comparing = ["strcmp", "strncmp", "memcmp", "strcasecmp", "strcoll", "fabs", "abs"];
    // The arrow of a pointer does not compare.
    let signs = expression.replace("->", "  ");
    !comparing.iter().any(|name| find_word(expression, name).is_some())
        && !["==", "!=", "<", ">", "||", "&&", "?"].iter().any(|sign| split(&signs, sign).len() > 1)
}

/// The arguments of a call that is the whole expression.
fn call<'a>(expression: &'a str, name: &str) -> Option<&'a str> {
    let inner = expression.strip_prefix(name).filter(|_| !name.is_empty())?.trim_start().strip_prefix('(')?;
    closing(inner).filter(|end| inner[end + 1..].trim().is_empty()).map(|end| &inner[..end])
}

/// Without spaces and parentheses around all of it.
fn bare(text: &str) -> &str {
    let text = text.trim();
    match text.strip_prefix('(') {
        Some(inner) if closing(inner).is_some_and(|end| end + 1 == inner.len()) => bare(&inner[..inner.len() - 1]),
        _ => text,
    }
}

fn literal(text: &str) -> Option<Wanted> {
    let text = bare(text);
    match text {
        "true" => return Some(Wanted::Truth(true)),
        "false" => return Some(Wanted::Truth(false)),
        "INT_MAX" => return Some(Wanted::Integer(i32::MAX.into())),
        "INT_MIN" => return Some(Wanted::Integer(i32::MIN.into())),
        _ => {}
    }
    if let Some(quoted) = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        let bytes = unescaped(quoted)?;
        let [byte] = bytes[..] else { return None };
        return Some(Wanted::Integer((byte as i8).into()));
    }
    let digits = text.trim_end_matches(['l', 'L', 'u', 'U']);
    if let Ok(value) = digits.parse() {
        return Some(Wanted::Integer(value));
    }
    if let Some(Ok(value)) = digits.strip_prefix("0x").map(|hex| i128::from_str_radix(hex, 16)) {
        return Some(Wanted::Integer(value));
    }
    number(text).map(Wanted::Number)
}

fn number(text: &str) -> Option<f64> {
    let text = bare(text);
    let is_one = text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.');
    text.trim_end_matches(['f', 'F', 'L']).parse().ok().filter(|_| is_one)
}

/// The bytes of a literal, as text.
fn text(literal: &str) -> Option<String> {
    let quoted = bare(literal).strip_prefix('"')?.strip_suffix('"')?;
    String::from_utf8(unescaped(quoted)?).ok()
}

fn unescaped(quoted: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = quoted.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'"' => return None,
            b'\\' => match rest.next()? {
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                b'0' => 0,
                plain @ (b'\\' | b'\'' | b'"' | b'?') => plain,
                _ => return None,
            },
            byte => byte,
        });
    }
    Some(bytes)
}

/// The places of a text outside of literals and of parentheses, with the depth of braces there.
fn places(text: &str) -> Vec<(usize, usize, usize)> {
    let (mut places, mut quote, mut escaped) = (Vec::new(), None, false);
    let (mut parentheses, mut braces) = (0usize, 0usize);
    for (at, c) in text.char_indices() {
        if let Some(end) = quote {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                _ if c == end => quote = None,
                _ => {}
            }
            continue;
        }
        match c {
            '"' | '\'' => quote = Some(c),
            ')' | ']' => parentheses = parentheses.saturating_sub(1),
            '}' => braces = braces.saturating_sub(1),
            _ => {}
        }
        places.push((at, parentheses, braces));
        match c {
            '(' | '[' => parentheses += 1,
            '{' => braces += 1,
            _ => {}
        }
    }
    places
}

/// The depth of braces at a text's end.
fn depth(text: &str) -> usize {
    let ended = format!("{text} ");
    places(&ended).last().map_or(0, |(_, _, braces)| *braces)
}

/// The `)` that belongs to a `(` before the text.
fn closing(text: &str) -> Option<usize> {
    let opened = format!("({text}");
    let close =
        places(&opened).into_iter().skip(1).find(|(at, depth, _)| *depth == 0 && opened[*at..].starts_with(')'));
    close.map(|(at, ..)| at - 1)
}

/// The parts of a text between a sign that is outside of literals, parentheses and braces.
fn split<'a>(text: &'a str, sign: &str) -> Vec<&'a str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    for (at, parentheses, braces) in places(text) {
        // `->`, `<=` and a sign of a number are not one.
        let rest = &text[at..];
        let is_number = sign == "-" && (text[start..at].trim().is_empty() || text[..at].ends_with(['e', 'E']));
        let is_other = rest.starts_with("->") || rest.starts_with("<=") || rest.starts_with(">=") || is_number;
        if at >= start && parentheses == 0 && braces == 0 && rest.starts_with(sign) && !is_other {
            parts.push(&text[start..at]);
            start = at + sign.len();
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Where a word of its own is.
fn find_word(text: &str, word: &str) -> Option<usize> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let is_own = |at: &usize| !text[..*at].ends_with(is_name) && !text[*at + word.len()..].starts_with(is_name);
    let places: Vec<usize> = places(text).into_iter().map(|(at, ..)| at).collect();
    text.match_indices(word).map(|(at, _)| at).find(|at| is_own(at) && places.binary_search(at).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assertion_is_an_answer_and_a_value() {
        for (assertion, expression, wanted) in [
            ("f(1, 2) == 3", "f(1, 2)", Wanted::Integer(3)),
            ("(f(')') == '\\n')", "f(')')", Wanted::Integer(10)),
            ("-7L == f(a[0])", "f(a[0])", Wanted::Integer(-7)),
            ("f(\"==\") == true", "f(\"==\")", Wanted::Truth(true)),
            ("f(x)", "f(x)", Wanted::Truth(true)),
            ("!f(x)", "f(x)", Wanted::Truth(false)),
            ("f(2) == 2.5", "f(2)", Wanted::Number(2.5)),
            ("strcmp(f(\"a, b\"), \"x\\\"y\") == 0", "f(\"a, b\")", Wanted::Text("x\"y".into())),
            ("fabs(f(1.5, -2) - -2.5e-1) < 1e-6", "f(1.5, -2)", Wanted::Near(-0.25, 1e-6)),
            ("p->next == 0", "p->next", Wanted::Integer(0)),
        ] {
            let case = Written::read(&format!("assert({assertion});")).unwrap();
            assert_eq!(case, Written { body: format!("__answer({expression});"), wanted: vec![wanted] });
        }
    }

    #[test]
    fn a_main_has_statements_and_assertions() {
        let text = "#include <assert.h>\nint main() {\n  int a[] = {1, 2};\n  assert(f(a, 2) == 3 && a[0] == 1);\n  return 0;\n}\n";
        let case = Written::read(text).unwrap();
        assert_eq!(case.body.trim(), "int a[] = {1, 2};\n  __answer(f(a, 2));__answer(a[0]);");
        assert_eq!(case.compare("3\n1\n"), Ok(()));
        assert!(case.compare("3\n").unwrap_err().contains("no value"));
        assert!(case.compare("3\n1\n1\n").unwrap_err().contains("more values"));
        assert!(case.compare("3\n2\n").unwrap_err().contains("not 2"));
    }

    #[test]
    fn values_are_compared_by_their_kind() {
        let is = |wanted: Wanted, answer| wanted.is(answer);
        assert!(is(Wanted::Truth(true), "true") && is(Wanted::Truth(true), "5") && is(Wanted::Truth(false), "0"));
        assert!(!is(Wanted::Truth(false), "null") && !is(Wanted::Truth(true), "\"a\""));
        assert!(is(Wanted::Integer(9_007_199_254_740_993), "9007199254740993"));
        assert!(!is(Wanted::Integer(9_007_199_254_740_993), "9007199254740992"));
        assert!(is(Wanted::Integer(2), "2.0") && !is(Wanted::Integer(2), "2.5"));
        assert!(is(Wanted::Near(0.5, 0.1), "0.55") && !is(Wanted::Near(0.5, 0.1), "0.7"));
        assert!(!is(Wanted::Near(0.5, 0.1), "null") && !is(Wanted::Text("a".into()), "null"));
    }

    #[test]
    fn what_would_be_decided_beside_the_code_is_refused() {
        for (text, what) in [
            ("int x = f(1);", "no `assert`"),
            ("for (;;) { assert(f(1) == 1); }", "within braces"),
            ("assert(f(1) == g(1));", "cannot be compared"),
            ("assert(strcmp(f(1), g(1)) == 0);", "cannot be compared"),
            ("assert(strcmp(f(1), \"a\") > 0);", "cannot be compared"),
            ("assert(f(1) > 2);", "cannot be compared"),
            ("assert(f(1) != 2);", "cannot be compared"),
            ("assert(f(1) == 1 || f(1) == 2);", "cannot be compared"),
            ("assert(memcmp(a, b, 4) == 0);", "cannot be compared"),
            ("assert(abs(f(1)) == 4);", "cannot be compared"),
            ("int same(int a) { return 1; } int main() { assert(same(f(1))); }", "more than a `main`"),
        ] {
            let error = Written::read(text).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
