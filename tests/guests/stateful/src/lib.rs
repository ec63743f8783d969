//! Gives the number of calls of this instance as its score, this call included.

use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Score, Verdict};
use std::cell::Cell;

struct Stateful {
    calls: Cell<u32>,
    pure: bool,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// Declares itself pure, which is false.
    #[serde(default)]
    pure: bool,
}

impl Reward for Stateful {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        Ok(Self { calls: Cell::new(0), pure: params.pure })
    }

    fn info(&self) -> Info {
        let info = Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        if self.pure { info.pure() } else { info }
    }

    fn score(&self, _: &Sample, _: &Reference) -> Result<Verdict, Failure> {
        self.calls.set(self.calls.get() + 1);
        Ok(Score::new(self.calls.get().into()).into())
    }
}

gavel_sdk::export_reward!(Stateful);
