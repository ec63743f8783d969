//! Declares the range of scores of its parameters.

use attack::{Failure, Info, Reference, Reward, Sample, Score, Verdict};

struct FalseRange(Params);

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// As text, like the other: JSON has no `nan`.
    min: String,
    max: String,
}

impl Reward for FalseRange {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        Ok(Self(params))
    }

    fn info(&self) -> Info {
        let number = |text: &str| text.parse().unwrap_or(0.0);
        Info::new("false-range", "1").score_range(number(&self.0.min), number(&self.0.max))
    }

    fn score(&self, _: &Sample, _: &Reference) -> Result<Verdict, Failure> {
        Ok(Score::new(1.0).into())
    }
}

attack::export_reward!(FalseRange);
