//! Writes the `main` of a job that wants values: the result of a function, or the statements of a test.

use serde_json::Value;
use std::fmt::Write;

/// Goes before the code, whose own `main` is not run.
const BEFORE: &str = "#define main __code_main\n#line 1 \"main.c\"\n";

/// Goes after it: a value by its type. Tests use the common headers without including them.
const AFTER: &str = r"
#undef main
#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
void __answer_signed(long long value);
void __answer_unsigned(unsigned long long value);
void __answer_bool(int value);
void __answer_real(double value);
void __answer_text(const void *value);
void __answer_pointer(const void *value);
#define __answer(value) _Generic((value), _Bool: __answer_bool, float: __answer_real, double: __answer_real, \
    long double: __answer_real, char: __answer_signed, unsigned char: __answer_signed, short: __answer_signed, \
    unsigned short: __answer_signed, int: __answer_signed, unsigned: __answer_signed, long: __answer_signed, \
    long long: __answer_signed, unsigned long: __answer_unsigned, unsigned long long: __answer_unsigned, \
    char *: __answer_text, const char *: __answer_text, unsigned char *: __answer_text, \
    const unsigned char *: __answer_text, default: __answer_pointer)(value)
int main(void) {
";

/// The code with a `main` that runs the statements of a test, which answer with `__answer`.
pub fn testing(code: &str, test: &str) -> String {
    format!("{BEFORE}{code}{AFTER}#line 1 \"test.c\"\n{test}\nreturn 0;\n}}\n")
}

/// The code with a `main` that answers with the function's result.
///
/// # Errors
/// The code has no such function, or an argument has no form in C.
pub fn calling(code: &str, function: &str, arguments: &[Value]) -> Result<String, String> {
    let parameters = parameters(code, function).ok_or_else(|| format!("`{function}' is not defined"))?;
    if parameters.len() != arguments.len() {
        let (has, given) = (parameters.len(), arguments.len());
        return Err(format!("`{function}' has {has} parameters, and the test gives {given} arguments"));
    }
    let mut statements = String::new();
    let mut call = Vec::new();
    for (number, (parameter, argument)) in parameters.iter().zip(arguments).enumerate() {
        call.push(written(&format!("__argument_{number}"), parameter, argument, &mut statements)?);
    }
    // Writing to a text does not fail, here and below.
    _ = writeln!(statements, "__answer({function}({}));", call.join(", "));
    Ok(testing(code, &statements))
}

/// A parameter's type: `char`, `const`-less, and how many pointers or arrays it has.
#[derive(Debug, PartialEq)]
struct Parameter {
    base: String,
    depth: usize,
    /// The sizes of an array of arrays, as they are written.
    inner: String,
}

/// The parameters of a function that the code defines.
fn parameters(code: &str, function: &str) -> Option<Vec<Parameter>> {
    let code = bare(code);
    let is_name = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let bytes = code.as_bytes();
    for (start, _) in code.match_indices(function) {
        let end = start + function.len();
        if is_name(start.checked_sub(1).and_then(|before| bytes.get(before))) || is_name(bytes.get(end)) {
            continue;
        }
        let Some(rest) = code[end..].trim_start().strip_prefix('(') else { continue };
        let Some(close) = closing(rest) else { continue };
        if rest[close + 1..].trim_start().starts_with('{') {
            let list = rest[..close].trim();
            return match list {
                "" | "void" => Some(Vec::new()),
                _ => Some(list.split(',').map(parameter).collect()),
            };
        }
    }
    None
}

fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn parameter(text: &str) -> Parameter {
    let (front, arrays) =
        text.split_once('[').map_or((text, String::new()), |(front, rest)| (front, format!("[{rest}")));
    let depth = front.matches('*').count() + arrays.matches('[').count();
    let inner = arrays.split_once(']').map_or("", |(_, inner)| inner).trim().to_owned();
    let skipped = ["const", "restrict", "volatile", "register", "struct", "static"];
    let spaced = front.replace('*', " ");
    let mut words: Vec<&str> = spaced.split_whitespace().filter(|word| !skipped.contains(word)).collect();
    let types = ["unsigned", "signed", "int", "long", "short", "char", "float", "double", "_Bool", "bool"];
    // The last word is the name, but it may be left out.
    if words.len() > 1 && words.last().is_some_and(|word| !types.contains(word)) {
        words.pop();
    }
    Parameter { base: words.join(" "), depth, inner }
}

/// The code with blanks in place of its comments and of what is in its literals.
fn bare(code: &str) -> String {
    let mut kept = String::new();
    let mut rest = code;
    while let Some(start) = rest.find(['"', '\'', '/']) {
        kept.push_str(&rest[..start]);
        rest = &rest[start..];
        let (length, shown) = if let Some(comment) = rest.strip_prefix("/*") {
            (comment.find("*/").map_or(rest.len(), |at| at + 4), " ")
        } else if rest.starts_with("//") {
            (rest.find('\n').unwrap_or(rest.len()), " ")
        } else if rest.starts_with('/') {
            (1, "/")
        } else {
            (literal_length(rest), "0")
        };
        kept.push_str(shown);
        rest = &rest[length..];
    }
    kept + rest
}

/// The bytes of the literal that a text starts with. It does not go on after its line.
fn literal_length(text: &str) -> usize {
    let mut chars = text.char_indices();
    let quote = chars.next().map(|(_, quote)| quote);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => _ = chars.next(),
            '\n' => return at,
            _ if Some(c) == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// An argument as an expression, after the statements that it needs.
fn written(name: &str, parameter: &Parameter, value: &Value, statements: &mut String) -> Result<String, String> {
    let Parameter { base, depth, inner } = parameter;
    let unfit = || format!("the argument {value} has no form as `{base}{}'", "*".repeat(*depth));
    match value {
        Value::Bool(truth) if *depth == 0 => Ok(i32::from(*truth).to_string()),
        Value::Number(number) if *depth == 0 => {
            let text = number.to_string();
            Ok(if text.contains(['.', 'e', 'E']) { text } else { format!("({})", integer(&text)) })
        }
        Value::String(text) if *depth == 0 && base.ends_with("char") && text.len() == 1 => {
            Ok(text.as_bytes()[0].to_string())
        }
        Value::Null if *depth > 0 => Ok("0".to_owned()),
        Value::String(text) if *depth == 1 && base.ends_with("char") => {
            _ = writeln!(statements, "static char {name}[] = {};", literal(text));
            Ok(name.to_owned())
        }
        Value::Array(items) if *depth > 0 && inner.is_empty() => {
            let element = Parameter { base: base.clone(), depth: depth - 1, inner: String::new() };
            let mut list = Vec::new();
            for (number, item) in items.iter().enumerate() {
                list.push(written(&format!("{name}_{number}"), &element, item, statements)?);
            }
            let stars = "*".repeat(depth - 1);
            let size = items.len().max(1);
            let list = if list.is_empty() { "0".to_owned() } else { list.join(", ") };
            _ = writeln!(statements, "static {base} {stars}{name}[{size}] = {{{list}}};");
            Ok(name.to_owned())
        }
        Value::Array(items) if *depth > 0 => {
            let list = nested(value).ok_or_else(unfit)?;
            _ = writeln!(statements, "static {base} {name}[{}]{inner} = {list};", items.len().max(1));
            Ok(name.to_owned())
        }
        _ => Err(unfit()),
    }
}

/// Lists of lists of numbers.
fn nested(value: &Value) -> Option<String> {
    match value {
        Value::Array(items) => {
            let items: Option<Vec<String>> = items.iter().map(nested).collect();
            items.map(|items| format!("{{{}}}", items.join(", ")))
        }
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(i32::from(*truth).to_string()),
        Value::String(text) => Some(literal(text)),
        _ => None,
    }
}

fn integer(text: &str) -> String {
    match text.parse::<i64>() {
        Ok(i64::MIN) => "-9223372036854775807L - 1".to_owned(),
        Ok(value) if i32::try_from(value).is_ok() => text.to_owned(),
        Ok(_) => format!("{text}L"),
        Err(_) => format!("{text}UL"),
    }
}

/// A text as a literal. Every byte but letters, digits and spaces is escaped.
fn literal(text: &str) -> String {
    let mut literal = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b' ' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => literal.push(char::from(byte)),
            _ => _ = write!(literal, "\\{byte:03o}"),
        }
    }
    literal + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(base: &str, depth: usize, inner: &str) -> Parameter {
        Parameter { base: base.into(), depth, inner: inner.into() }
    }

    #[test]
    fn a_definition_has_parameters() {
        let code = "int f(int);\n/* f(char) { */ // f(\nint g(void) { return f(1); }\nint f(const int *a, unsigned long n, char **w, int m[][3], double x[], bool) {";
        let found = parameters(code, "f").unwrap();
        let wanted = [
            of("int", 1, ""),
            of("unsigned long", 0, ""),
            of("char", 2, ""),
            of("int", 2, "[3]"),
            of("double", 1, ""),
            of("bool", 0, ""),
        ];
        assert_eq!(found, wanted);
        assert_eq!(parameters(code, "g").unwrap(), []);
        assert!(parameters(code, "h").is_none());
    }

    #[test]
    fn literals_have_no_comments_and_no_definitions() {
        let code = "char *u = \"http://x\", *q = \"/*\"; char c = '\"', d = '\\\\'; // it's f(char c) {\n\
                    char *s = \"f(long n) {\"; int f(int x) { return '/' / x; }";
        assert_eq!(parameters(code, "f").unwrap(), [of("int", 0, "")]);
        assert_eq!(bare("a /* \" */ b \"\\\"//\" c 'x"), "a   b 0 c 0");
    }

    #[test]
    fn arguments_have_forms_in_c() {
        let mut statements = String::new();
        let mut form = |parameter: Parameter, value: &str| {
            written("a", &parameter, &serde_json::from_str(value).unwrap(), &mut statements)
        };
        assert_eq!(form(of("int", 0, ""), "-3").unwrap(), "(-3)");
        assert_eq!(form(of("long", 0, ""), "3000000000").unwrap(), "(3000000000L)");
        assert_eq!(form(of("int", 1, ""), "[1, -2]").unwrap(), "a");
        assert_eq!(form(of("char", 2, ""), "[\"x\\\"\"]").unwrap(), "a");
        assert_eq!(form(of("int", 2, "[2]"), "[[1, 2], [3, 4]]").unwrap(), "a");
        assert!(form(of("int", 0, ""), "[1]").unwrap_err().contains("has no form"));
        assert_eq!(
            statements,
            "static int a[2] = {(1), (-2)};\nstatic char a_0[] = \"x\\042\";\nstatic char *a[1] = {a_0};\nstatic int a[2][2] = {{1, 2}, {3, 4}};\n"
        );
    }
}
