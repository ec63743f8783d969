//! Text functions of Python's `str`, on which verl's rules depend.

/// Whether `character` is white space to `str.isspace`, `str.split` and `\s`:
/// Unicode's, and the four separators of ASCII.
pub fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

/// `str.strip`.
pub fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// `" ".join(text.split())`.
pub fn words(text: &str) -> String {
    text.split(is_space).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The last `count` characters.
pub fn tail(text: &str, count: usize) -> &str {
    let Some(skip) = count.checked_sub(1) else { return "" };
    text.char_indices().rev().nth(skip).map_or(text, |(start, _)| &text[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_is_that_of_python() {
        assert_eq!(strip("\u{1c}\u{a0}\u{85} a \u{3000}\n"), "a");
        assert_eq!(words("\u{1f}a\u{2003}\tb\r\n"), "a b");
        // Zero-width characters, which are not spaces to Python either.
        assert_eq!(strip("\u{200b}a\u{feff}"), "\u{200b}a\u{feff}");
    }

    #[test]
    fn the_tail_counts_characters() {
        assert_eq!(tail("größe", 3), "öße");
        assert_eq!(tail("größe", 5), "größe");
        assert_eq!(tail("größe", 9), "größe");
        assert_eq!(tail("größe", 0), "");
        assert_eq!(tail("", 3), "");
    }
}
