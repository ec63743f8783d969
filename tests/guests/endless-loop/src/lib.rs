//! Never returns and never waits.

use gavel_sdk::{Failure, Info, NoParams, Reference, Reward, Sample, Verdict};

struct EndlessLoop;

impl Reward for EndlessLoop {
    type Params = NoParams;

    fn new(_: NoParams) -> Result<Self, String> {
        Ok(Self)
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn score(&self, _: &Sample, _: &Reference) -> Result<Verdict, Failure> {
        loop {
            std::hint::black_box(());
        }
    }
}

gavel_sdk::export_reward!(EndlessLoop);
