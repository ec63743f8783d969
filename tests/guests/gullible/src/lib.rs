//! A reward as if written in a hurry: 1 where the number after `Answer:` is the
//! ground truth. Its parameters give it weaknesses for `gavel plugin check` to
//! find.

use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Score, Verdict};
use std::cell::Cell;

struct Gullible {
    params: Params,
    calls: Cell<u32>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct Params {
    /// The ground truth may stand anywhere.
    anywhere: bool,
    /// Any text after `Answer:` is right.
    any: bool,
    /// Each `Answer:` counts.
    counts: bool,
    /// A long response makes it panic.
    brittle: bool,
    /// The score has a random part.
    dice: bool,
    /// The score depends on the calls before.
    remembers: bool,
    /// It claims to be pure.
    pure: bool,
}

impl Reward for Gullible {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        Ok(Self { params, calls: Cell::new(0) })
    }

    fn info(&self) -> Info {
        let info = Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        if self.params.pure { info.pure() } else { info }
    }

    fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure> {
        let (params, response, truth) = (&self.params, sample.response(), reference.require_ground_truth()?);
        if params.brittle && response.len() > 1 << 20 {
            panic!("a response of {} bytes", response.len());
        }
        let answer = response.rsplit_once("Answer: ").map(|(_, answer)| answer.trim());
        let right = match answer {
            _ if params.anywhere => response.contains(&truth),
            Some(answer) => params.any || answer == truth,
            None => false,
        };
        let mut score = f64::from(u8::from(right));
        if params.counts {
            score *= response.matches("Answer:").count() as f64;
        }
        if params.dice {
            score += getrandom::u32().map_err(|error| Failure::internal(error.to_string()))? as f64 / 1e12;
        }
        self.calls.set(self.calls.get() + 1);
        if params.remembers {
            score += f64::from(self.calls.get()) / 1e3;
        }
        Ok(Score::new(score).into())
    }
}

gavel_sdk::export_reward!(Gullible);
