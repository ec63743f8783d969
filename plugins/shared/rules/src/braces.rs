//! Braces of LaTeX.

/// The start of `text` up to the brace that closes the first open brace; `None`
/// if that one is not closed.
pub fn balanced(text: &str) -> Option<&str> {
    let mut depth = 0_i64;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(&text[..=at]);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_brace_is_followed_to_its_end() {
        assert_eq!(balanced(r"\boxed{\frac{1}{2}} or {3}"), Some(r"\boxed{\frac{1}{2}}"));
        assert_eq!(balanced(r"\boxed{\frac{1}{2}"), None);
        assert_eq!(balanced("no braces"), None);
        assert_eq!(balanced("{größe}"), Some("{größe}"));
    }

    #[test]
    fn a_brace_that_nothing_opened_counts_against_the_next() {
        assert_eq!(balanced("}{a}"), None);
        assert_eq!(balanced("}{{a}}"), Some("}{{a}"));
    }
}
