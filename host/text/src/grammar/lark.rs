//! Grammars that are written in Lark's form.

use std::fmt::Write;

/// The deepest nesting of brackets: the library descends into them.
const DEEPEST: usize = 200;

/// Refuses a grammar that is nested too deep, or that holds a JSON schema, which would not be checked.
pub(super) fn check(text: &str) -> Result<(), String> {
    if text.contains("%json") {
        return Err("`%json` is not supported\nhint: use a JSON schema".into());
    }
    let mut depth = 0usize;
    for char in text.chars() {
        match char {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            return Err(format!("its brackets are nested more than {DEEPEST} deep"));
        }
    }
    Ok(())
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
    fn a_literal_has_no_character_that_would_end_it() {
        assert_eq!(literal("a\"b\\\n\x7fé"), "\"a\\\"b\\\\\\u000a\\u007fé\"");
        assert_eq!(choice(&["a".into(), "b".into()]), "start: \"a\" | \"b\"\n");
    }
}
