//! Abstains from every sample.

use gavel_sdk::{Failure, Info, NoParams, Reference, Reward, Sample, Verdict};

struct Abstain;

impl Reward for Abstain {
    type Params = NoParams;

    fn new(_: NoParams) -> Result<Self, String> {
        Ok(Self)
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn score(&self, _: &Sample, _: &Reference) -> Result<Verdict, Failure> {
        Ok(Verdict::abstain("this plugin abstains from every sample"))
    }
}

gavel_sdk::export_reward!(Abstain);
