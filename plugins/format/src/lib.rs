//! Scores 1 where the whole response matches a regular expression, and 0
//! where it does not.

use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Score, Verdict};
use regex::Regex;
use serde::Deserialize;

/// The reward, with its pattern compiled.
struct Format {
    whole: Regex,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// A regular expression in the syntax of the `regex` crate.
    pattern: String,
}

impl Reward for Format {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        whole(&params.pattern).map(|whole| Self { whole }).map_err(|error| format!("`pattern`: {error}"))
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure().score_range(0.0, 1.0)
    }

    fn score(&self, sample: &Sample, _: &Reference) -> Result<Verdict, Failure> {
        Ok(Score::new(f64::from(self.whole.is_match(&sample.response()))).into())
    }
}

gavel_sdk::export_reward!(Format);

/// `pattern`, made to match whole texts only.
fn whole(pattern: &str) -> Result<Regex, regex::Error> {
    // On its own first: an error then quotes what the user wrote, and `a)(b` is one.
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
    fn a_broken_pattern_is_refused_as_it_was_written() {
        let error = Format::new(Params { pattern: "a(b".into() }).err().unwrap();
        assert!(error.starts_with("`pattern`: ") && error.contains("a(b") && !error.contains(r"\A"), "{error}");
        assert!(Format::new(Params { pattern: "a)(b".into() }).is_err());
    }

    #[test]
    fn words_are_unicode() {
        assert!(matches(r"\w+", "größer"));
    }
}
