//! Panics, which is a trap with a message on the standard error.

use gavel_sdk::{Failure, Info, NoParams, Reference, Reward, Sample, Verdict};

struct Trap;

impl Reward for Trap {
    type Params = NoParams;

    fn new(_: NoParams) -> Result<Self, String> {
        Ok(Self)
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn score(&self, _: &Sample, _: &Reference) -> Result<Verdict, Failure> {
        panic!("this plugin panics on every sample")
    }
}

gavel_sdk::export_reward!(Trap);
