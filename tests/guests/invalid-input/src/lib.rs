//! Says that every sample is invalid.

use gavel_sdk::{Failure, Info, NoParams, Reference, Reward, Sample, Verdict};

struct InvalidInput;

impl Reward for InvalidInput {
    type Params = NoParams;

    fn new(_: NoParams) -> Result<Self, String> {
        Ok(Self)
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn score(&self, _: &Sample, _: &Reference) -> Result<Verdict, Failure> {
        Err(Failure::invalid_input("this plugin works on no sample"))
    }
}

gavel_sdk::export_reward!(InvalidInput);
