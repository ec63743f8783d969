//! Grammars that are written in Lark's form.

use std::fmt::Write;

/// The deepest nesting of brackets: the library descends into them.
const DEEPEST: usize = 200;

/// Refuses a grammar that is nested too deep, holds a JSON schema, which would not be checked, or has an operator that the
/// library follows without a bound.
pub(super) fn check(text: &str) -> Result<(), String> {
    if text.contains("%json") {
        return Err("`%json` is not supported\nhint: use a JSON schema".into());
    }
    let mut depth = 0usize;
    for (char, after) in code(text) {
        match char {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            return Err(format!("its brackets are nested more than {DEEPEST} deep"));
        }
        if let Some(operator) = endless_operator(char, after) {
            return Err(format!("{operator} is not supported, since its work has no bound"));
        }
    }
    Ok(())
}

/// `&`, or `~` before what it negates: where terminals intersect, the library looks at all pairs of their states, such as
/// 9 million for `/(.{3000})*/ & /(.{3001})*/`. The `~` of a repetition has a number after it. What the library does not
/// read, it refuses before it does any work.
fn endless_operator(char: char, after: &str) -> Option<&'static str> {
    match char {
        '&' => Some("`&`"),
        '~' if !after.trim_start().starts_with(|next: char| next.is_ascii_digit()) => Some("`~` without a number"),
        _ => None,
    }
}

/// The characters outside of texts, regular expressions, comments and names of special tokens, each with what follows it.
fn code(text: &str) -> impl Iterator<Item = (char, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let char = rest.chars().next()?;
        let after = &rest[char.len_utf8()..];
        rest = match char {
            '"' => behind(after, '"'),
            '#' => behind_line(after),
            '/' if after.starts_with('/') => behind_line(after),
            '/' => behind(after, '/'),
            // A special token may have quotes in its name.
            '<' => match after.find(|next: char| matches!(next, '<' | '>') || next.is_whitespace()) {
                Some(end) if after[end..].starts_with('>') => &after[end..],
                _ => after,
            },
            _ => after,
        };
        Some((char, after))
    })
}

/// What follows the line.
fn behind_line(text: &str) -> &str {
    text.find('\n').map_or("", |end| &text[end..])
}

/// What follows the next `end` that is not escaped.
fn behind(text: &str, end: char) -> &str {
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => {
                chars.next();
            }
            _ if char == end => return &text[at + end.len_utf8()..],
            _ => {}
        }
    }
    ""
}

/// One of these texts.
pub(super) fn choice(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| literal(text)).collect();
    format!("start: {}\n", texts.join(" | "))
}

/// A text as a literal.
pub(super) fn literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => literal.extend(['\\', char]),
            // In this form, no such character may be written as it is.
            '\0'..='\x1f' | '\x7f' => {
                // Writing to a string does not fail.
                let _ = write!(literal, "\\u{:04x}", u32::from(char));
            }
            _ => literal.push(char),
        }
    }
    literal.push('"');
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_without_a_bound_are_found_outside_of_texts_and_comments() {
        for (text, operator) in [
            ("start: A\nA: /a/ & /b/", Some("`&`")),
            ("start: A\nA: ~/a/", Some("`~` without a number")),
            ("start: A\nA: ~ ( \"a\" | ~ B )", Some("`~` without a number")),
            ("start: \"a\"~3 \"b\"~ 1..9", None),
            (r#"start: "&~" /&~\/&/ "\"&""#, None),
            ("start: \"a\" // & ~x\n# & ~x\n", None),
            ("start: \"//\" & \"b\"", Some("`&`")),
            // A regular expression ends at the first `/`, also within brackets.
            ("start: /[/] & A", Some("`&`")),
            ("start: /[/]#/ & A", None),
            ("start: <\"> & <\">", Some("`&`")),
            ("start: <a&b> \"c\"", None),
            ("start: \"a", None),
        ] {
            let found = code(text).find_map(|(char, after)| endless_operator(char, after));
            assert_eq!(found, operator, "{text}");
        }
        assert!(check("start: A\nA: /a/ & /b/").unwrap_err().starts_with("`&` is not supported"));
    }

    #[test]
    fn brackets_in_texts_do_not_nest() {
        let rules = |rule: &str| format!("start: {}\n", vec![rule; 300].join(" "));
        assert_eq!(check(&rules("\"(\"")), Ok(()));
        assert!(check(&rules("( \")\"")).unwrap_err().contains("more than 200 deep"));
    }

    #[test]
    fn a_literal_has_no_character_that_would_end_it() {
        assert_eq!(literal("a\"b\\\n\x7fé"), "\"a\\\"b\\\\\\u000a\\u007fé\"");
        assert_eq!(choice(&["a".into(), "b".into()]), "start: \"a\" | \"b\"\n");
    }
}
