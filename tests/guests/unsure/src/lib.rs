//! Scores the answer after "Answer:": 1 if it is the ground truth, and -1 otherwise. Abstains on an answer that begins
//! with one of the upper digits, if it is wrong, or whether it is right or wrong.

use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Score, Verdict};

struct Unsure {
    params: Params,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The least digit of an answer that it abstains on.
    #[serde(default = "five")]
    from: u8,
    /// Whether it abstains on right answers, too.
    #[serde(default)]
    also_right: bool,
}

fn five() -> u8 {
    5
}

impl Reward for Unsure {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        Ok(Self { params })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure().score_range(-1.0, 1.0)
    }

    fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure> {
        let truth = reference.require_ground_truth()?;
        let response = sample.response();
        let answer = response.rsplit_once("Answer:").map_or("", |(_, answer)| answer.trim());
        let is_right = answer == truth.trim();
        let first = answer.chars().next().and_then(|first| first.to_digit(10));
        let is_unclear = first.is_some_and(|first| first >= u32::from(self.params.from));
        if is_unclear && (!is_right || self.params.also_right) {
            return Ok(Verdict::abstain(format!("the answer begins with {} or more", self.params.from)));
        }
        Ok(Score::new(if is_right { 1.0 } else { -1.0 }).into())
    }
}

gavel_sdk::export_reward!(Unsure);
