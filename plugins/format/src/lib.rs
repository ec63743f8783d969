//! Scores 1 where the whole response has the required form, and 0 where it does
//! not. The form is a sequence of elements such as
//! `<think>…</think><answer>…</answer>`, a regular expression, or both.

mod pattern;
mod tags;

use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Score, Verdict};
use pattern::whole;
use regex::Regex;
use serde::Deserialize;
use tags::Tags;

/// The reward, with its pattern compiled.
struct Format {
    whole: Option<Regex>,
    tags: Option<Tags>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Params {
    /// A regular expression in the syntax of the `regex` crate.
    pattern: Option<String>,
    /// The names of the elements that the response consists of, in order.
    tags: Option<Vec<String>>,
}

impl Reward for Format {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        if params.pattern.is_none() && params.tags.is_none() {
            return Err("missing field `pattern` or `tags`: give at least one of them".into());
        }
        let whole = params.pattern.map(|pattern| whole(&pattern)).transpose();
        Ok(Self {
            whole: whole.map_err(|error| format!("`pattern`: {error}"))?,
            tags: params.tags.map(Tags::new).transpose().map_err(|error| format!("`tags`: {error}"))?,
        })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure().score_range(0.0, 1.0)
    }

    fn score(&self, sample: &Sample, _: &Reference) -> Result<Verdict, Failure> {
        let response = sample.response();
        let problem = self.tags.as_ref().and_then(|tags| tags.check(&response).err());
        if let Some(problem) = problem {
            return Ok(Score::new(0.0).note(problem).into());
        }
        let matches = self.whole.as_ref().is_none_or(|whole| whole.is_match(&response));
        Ok(Score::new(f64::from(matches)).into())
    }
}

gavel_sdk::export_reward!(Format);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_ask_for_nothing_or_cannot_be_met_are_refused() {
        let error = |params| Format::new(params).err().unwrap();
        assert!(error(Params::default()).starts_with("missing field `pattern` or `tags`"));
        let broken = error(Params { pattern: Some("a(b".into()), tags: None });
        assert!(broken.starts_with("`pattern`: ") && broken.contains("a(b") && !broken.contains(r"\A"), "{broken}");
        assert!(error(Params { pattern: None, tags: Some(vec![]) }).starts_with("`tags`: "));
    }
}
