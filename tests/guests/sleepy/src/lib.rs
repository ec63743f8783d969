//! Waits in the host, using no CPU, then gives the score 1.

use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Score, Verdict};
use std::time::Duration;

struct Sleepy {
    pause: Duration,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// How long to wait, in milliseconds.
    milliseconds: u64,
}

impl Reward for Sleepy {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        Ok(Self { pause: Duration::from_millis(params.milliseconds) })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn score(&self, _: &Sample, _: &Reference) -> Result<Verdict, Failure> {
        std::thread::sleep(self.pause);
        Ok(Score::new(1.0).into())
    }
}

gavel_sdk::export_reward!(Sleepy);
