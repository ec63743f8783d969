//! Gives a score that is not a number.

use gavel_sdk::{Failure, Info, NoParams, Reference, Reward, Sample, Score, Verdict};

struct NanScore;

impl Reward for NanScore {
    type Params = NoParams;

    fn new(_: NoParams) -> Result<Self, String> {
        Ok(Self)
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn score(&self, _: &Sample, _: &Reference) -> Result<Verdict, Failure> {
        Ok(Score::new(f64::NAN).into())
    }
}

gavel_sdk::export_reward!(NanScore);
