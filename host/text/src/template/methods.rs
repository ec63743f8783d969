//! The methods of Python's strings and lists that templates call. All other
//! methods come from `minijinja-contrib`.

use super::budget::{CHANGE, ITEM, SEARCH, SPELL, charge, charge_bytes, check_format, check_text, measure, read};
use super::values::{Result, text};
use minijinja::value::{Kwargs, Tuple, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State, Value};
use std::collections::HashSet;

pub(super) fn call(state: &mut State, value: &Value, method: &str, args: &[Value]) -> Result<Value> {
    let own = match (value.kind(), value.as_str()) {
        (_, Some(string)) => {
            charge_bytes(string.len(), work(method))?;
            args.iter().try_for_each(|arg| read(arg, SEARCH))?;
            string_method(string, method, args)?
        }
        (ValueKind::Seq, _) => {
            read(value, 0)?;
            args.iter().try_for_each(|arg| read(arg, 0))?;
            sequence_method(value, method, args)?
        }
        // It looks for its arguments.
        (ValueKind::Map, _) if method == "get" => {
            args.iter().try_for_each(|arg| charge_bytes(arg.as_str().map_or(0, str::len), SEARCH))?;
            None
        }
        (ValueKind::Map, _) if method == "copy" => Some(value.clone()),
        _ => None,
    };
    match own {
        Some(result) => measure(result),
        None => measure(minijinja_contrib::pycompat::unknown_method_callback(state, value, method, args)?),
    }
}

/// The work of a method with a byte of its text.
fn work(method: &str) -> u64 {
    match method {
        // They look at the ends of a text.
        "startswith" | "endswith" | "removeprefix" | "removesuffix" | "strip" | "lstrip" | "rstrip" => 0,
        "upper" | "lower" | "casefold" | "capitalize" | "islower" | "isupper" | "count" => CHANGE,
        "title" | "istitle" | "swapcase" | "splitlines" => SPELL,
        _ => SEARCH,
    }
}

fn string_method(string: &str, method: &str, args: &[Value]) -> Result<Option<Value>> {
    Ok(Some(match method {
        "strip" => trim(string, chars(args)?.as_deref(), true, true)?.into(),
        "lstrip" => trim(string, chars(args)?.as_deref(), true, false)?.into(),
        "rstrip" => trim(string, chars(args)?.as_deref(), false, true)?.into(),
        "split" => split(string, args, false)?,
        "rsplit" => split(string, args, true)?,
        "partition" => {
            let (separator,): (&str,) = from_args(args)?;
            let (before, after) = string.split_once(separator).map_or((string, None), |(a, b)| (a, Some(b)));
            triple(before, after.map_or("", |_| separator), after.unwrap_or_default())
        }
        "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            let (before, after) = string.rsplit_once(separator).map_or((None, string), |(a, b)| (Some(a), b));
            triple(before.unwrap_or_default(), before.map_or("", |_| separator), after)
        }
        "splitlines" => {
            let (keep, options): (Option<bool>, Kwargs) = from_args(args)?;
            let keep = keep.or(options.get("keepends")?).unwrap_or(false);
            options.assert_all_used()?;
            lines(string, keep).into_iter().map(Value::from).collect()
        }
        "replace" => {
            let (old, new, count): (&str, &str, Option<i64>) = from_args(args)?;
            replace(string, old, new, count)?.into()
        }
        "format" => {
            check_format(string, args)?;
            return Ok(None);
        }
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            string.strip_prefix(prefix).unwrap_or(string).into()
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            string.strip_suffix(suffix).unwrap_or(string).into()
        }
        "index" => {
            let (what,): (&str,) = from_args(args)?;
            match string.find(what) {
                Some(byte) => string[..byte].chars().count().into(),
                None => return Err(Error::new(ErrorKind::InvalidOperation, "index: substring not found")),
            }
        }
        "capitalize" => capitalize(string).into(),
        "title" => title(string).into(),
        "swapcase" => string.chars().flat_map(swap_case).collect::<String>().into(),
        "casefold" => string.to_lowercase().into(),
        "istitle" => (title(string) == string && string.chars().any(char::is_alphabetic)).into(),
        "isdigit" | "isdecimal" => (!string.is_empty() && string.chars().all(is_digit)).into(),
        "isspace" => (!string.is_empty() && string.chars().all(is_space)).into(),
        "zfill" => {
            let (width,): (usize,) = from_args(args)?;
            let (sign, digits) = match string.strip_prefix(['+', '-']) {
                Some(digits) => (&string[..1], digits),
                None => ("", string),
            };
            let zeros = width.saturating_sub(string.chars().count());
            charge(zeros)?;
            format!("{sign}{}{digits}", "0".repeat(zeros)).into()
        }
        "ljust" | "rjust" | "center" => {
            let (width, fill): (usize, Option<&str>) = from_args(args)?;
            let (fill, missing) = (fill.unwrap_or(" "), width.saturating_sub(string.chars().count()));
            charge(missing.saturating_mul(fill.len()))?;
            let left = match method {
                "ljust" => 0,
                "rjust" => missing,
                // CPython divides them like this.
                _ => missing / 2 + (missing & width & 1),
            };
            format!("{}{string}{}", fill.repeat(left), fill.repeat(missing - left)).into()
        }
        "join" => {
            let (values,): (&Value,) = from_args(args)?;
            let texts = values.try_iter()?.map(|value| measure(value).map(|value| text(&value)));
            let texts = texts.collect::<Result<Vec<_>>>()?;
            let between = texts.len().saturating_mul(string.len());
            charge(between)?;
            check_text(texts.iter().map(String::len).fold(between, usize::saturating_add))?;
            texts.join(string).into()
        }
        _ => return Ok(None),
    }))
}

fn sequence_method(value: &Value, method: &str, args: &[Value]) -> Result<Option<Value>> {
    match method {
        "index" => {
            let (what,): (&Value,) = from_args(args)?;
            let place = value.try_iter()?.position(|item| item == *what);
            let missing = || Error::new(ErrorKind::InvalidOperation, "index: the value is not in the list");
            place.map(Value::from).map(Some).ok_or_else(missing)
        }
        "copy" => Ok(Some(value.clone())),
        _ => Ok(None),
    }
}

fn triple(before: &str, separator: &str, after: &str) -> Value {
    Value::from(Tuple::from([Value::from(before), Value::from(separator), Value::from(after)]))
}

fn chars(args: &[Value]) -> Result<Option<String>> {
    let (chars,): (Option<String>,) = from_args(args)?;
    Ok(chars)
}

/// `str.replace`: a negative `count` is none.
pub(super) fn replace(string: &str, old: &str, new: &str, count: Option<i64>) -> Result<String> {
    let most = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX);
    let places = string.matches(old).take(most).count();
    charge_bytes(places, ITEM)?;
    charge(places.saturating_mul(new.len()).saturating_add(string.len()))?;
    Ok(string.replacen(old, new, most))
}

/// `str.strip`: without `chars`, it strips white space.
pub(super) fn strip(string: &str, chars: Option<&str>) -> Result<String> {
    trim(string, chars, true, true).map(str::to_owned)
}

fn trim<'a>(string: &'a str, chars: Option<&str>, start: bool, end: bool) -> Result<&'a str> {
    let whole = string.len();
    // The characters may be many.
    let chars: Option<HashSet<char>> = chars.map(|chars| chars.chars().collect());
    let gone = |char: char| match &chars {
        Some(chars) => chars.contains(&char),
        None => is_space(char),
    };
    let string = if start { string.trim_start_matches(gone) } else { string };
    let string = if end { string.trim_end_matches(gone) } else { string };
    charge_bytes(whole - string.len(), SPELL)?;
    Ok(string)
}

/// Python counts the separators U+001C to U+001F as white space.
fn is_space(char: char) -> bool {
    char.is_whitespace() || matches!(char, '\x1c'..='\x1f')
}

/// Digits of any script, but neither fractions nor numerals.
fn is_digit(char: char) -> bool {
    char.is_ascii_digit()
        || (char.is_numeric()
            && !char.is_ascii()
            && char.to_lowercase().next() == Some(char)
            && !matches!(char, '¼'..='¾' | '\u{2150}'..='\u{218f}' | '\u{3007}' | '\u{3021}'..='\u{3029}'))
}

fn swap_case(char: char) -> Box<dyn Iterator<Item = char>> {
    if char.is_uppercase() { Box::new(char.to_lowercase()) } else { Box::new(char.to_uppercase()) }
}

/// The first character in upper case, the others in lower case.
pub(super) fn capitalize(string: &str) -> String {
    let mut chars = string.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars.as_str().to_lowercase().chars()).collect(),
        None => String::new(),
    }
}

/// `str.title`: the first letter of each word in upper case, the others in lower case.
fn title(string: &str) -> String {
    let mut out = String::new();
    let mut after_letter = false;
    for char in string.chars() {
        match after_letter {
            true => out.extend(char.to_lowercase()),
            false => out.extend(char.to_uppercase()),
        }
        after_letter = char.is_lowercase() || char.is_uppercase();
    }
    out
}

fn split(string: &str, args: &[Value], from_end: bool) -> Result<Value> {
    let (separator, limit, options): (Option<&str>, Option<i64>, Kwargs) = from_args(args)?;
    let separator = match separator {
        Some(separator) => Some(separator.to_owned()),
        None => options.get("sep")?,
    };
    let limit = match limit {
        Some(limit) => Some(limit),
        None => options.get("maxsplit")?,
    };
    options.assert_all_used()?;
    // A limit below 0 means no limit.
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let pieces: Vec<&str> = match separator.as_deref() {
        Some("") => return Err(Error::new(ErrorKind::InvalidOperation, "split: empty separator")),
        Some(separator) if from_end => {
            let mut pieces: Vec<&str> = string.rsplitn(limit.saturating_add(1), separator).collect();
            pieces.reverse();
            pieces
        }
        Some(separator) => string.splitn(limit.saturating_add(1), separator).collect(),
        None if from_end => rsplit_space(string, limit),
        None => split_space(string, limit),
    };
    Ok(pieces.into_iter().map(Value::from).collect())
}

fn split_space(string: &str, limit: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = string.trim_start_matches(is_space);
    while !rest.is_empty() {
        let end = rest.find(is_space).filter(|_| pieces.len() < limit).unwrap_or(rest.len());
        pieces.push(&rest[..end]);
        rest = rest[end..].trim_start_matches(is_space);
    }
    pieces
}

fn rsplit_space(string: &str, limit: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = string.trim_end_matches(is_space);
    while !rest.is_empty() {
        let last = rest.char_indices().rev().find(|(_, char)| is_space(*char)).filter(|_| pieces.len() < limit);
        let start = last.map_or(0, |(index, char)| index + char.len_utf8());
        pieces.push(&rest[start..]);
        rest = rest[..start].trim_end_matches(is_space);
    }
    pieces.reverse();
    pieces
}

/// `str.splitlines`, with all line boundaries of Python.
fn lines(string: &str, keep: bool) -> Vec<&str> {
    let boundary = |char: char| matches!(char, '\n'..='\r' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let (mut lines, mut rest) = (Vec::new(), string);
    while !rest.is_empty() {
        let end = rest.find(boundary).unwrap_or(rest.len());
        let width = match rest[end..].starts_with("\r\n") {
            true => 2,
            false => rest[end..].chars().next().map_or(0, char::len_utf8),
        };
        lines.push(&rest[..if keep { end + width } else { end }]);
        rest = &rest[end + width..];
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_splits_as_in_python() {
        assert_eq!(split_space(" a  b\x1cc ", usize::MAX), ["a", "b", "c"]);
        assert_eq!(split_space(" a  b  c ", 1), ["a", "b  c "]);
        assert_eq!(rsplit_space(" a  b  c ", 1), [" a  b", "c"]);
        assert!(split_space(" \n", 3).is_empty());
    }

    #[test]
    fn every_line_boundary_counts() {
        assert_eq!(lines("a\r\nb\rc\n\nd\u{2028}e", false), ["a", "b", "c", "", "d", "e"]);
        assert_eq!(lines("a\r\nb\n", true), ["a\r\n", "b\n"]);
        assert!(lines("", false).is_empty());
    }
}
