//! Scores the answer after "Answer:": 1 if it is the ground truth, and -1 otherwise. Loops forever over a wrong answer
//! that begins with a digit of 5 or more.

use gavel_sdk::{Failure, Info, NoParams, Reference, Reward, Sample, Score, Verdict};

struct Loops;

impl Reward for Loops {
    type Params = NoParams;

    fn new(_: NoParams) -> Result<Self, String> {
        Ok(Self)
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure().score_range(-1.0, 1.0)
    }

    fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure> {
        let truth = reference.require_ground_truth()?;
        let response = sample.response();
        let answer = response.rsplit_once("Answer:").map_or("", |(_, answer)| answer.trim());
        if answer == truth.trim() {
            return Ok(Score::new(1.0).into());
        }
        while answer.starts_with(|first: char| ('5'..='9').contains(&first)) {
            std::hint::black_box(answer);
        }
        Ok(Score::new(-1.0).into())
    }
}

gavel_sdk::export_reward!(Loops);
