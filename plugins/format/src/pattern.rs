//! A regular expression for whole texts.

use regex::Regex;

/// `pattern`, made to match whole texts only.
pub fn whole(pattern: &str) -> Result<Regex, regex::Error> {
    // Compiled alone first, so that an error quotes the user's text and `a)(b` is an error.
    Regex::new(pattern)?;
    Regex::new(&format!(r"\A(?:{pattern})\z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, response: &str) -> bool {
        whole(pattern).unwrap().is_match(response)
    }

    #[test]
    fn the_whole_response_must_match() {
        let pattern = r"Answer: \d( \d)*";
        assert!(matches(pattern, "Answer: 1 3 7"));
        assert!(!matches(pattern, "Answer: 1 3 7\n"));
        assert!(!matches(pattern, "So: Answer: 1 3 7"));
        assert!(!matches(pattern, "Answer: 1 3 7 Answer: 1"));
    }

    #[test]
    fn every_alternative_is_anchored() {
        assert!(matches("a|ab", "ab"));
        assert!(!matches("a|b", "ac"));
        assert!(!matches("a|b", "cb"));
    }

    #[test]
    fn a_broken_pattern_is_refused() {
        assert!(whole("a(b").is_err());
        assert!(whole("a)(b").is_err());
    }

    #[test]
    fn words_are_unicode() {
        assert!(matches(r"\w+", "größer"));
    }
}
