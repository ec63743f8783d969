//! A judger that notes what it sees of each sample's state, its agent's object
//! and its speakers.

use gavel_sdk::{Failure, Info, Judger, NoParams, Reference, Sample, Score, Verdict};
use serde_json::{Value, json};

struct Witness;

impl Judger for Witness {
    type Params = NoParams;

    fn new(_: NoParams) -> Result<Self, String> {
        Ok(Self)
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
    }

    fn judge(&self, samples: &[Sample], _: &Reference) -> Result<Vec<Verdict>, Failure> {
        let seen = |sample: &Sample| {
            let states = sample.trajectories().map(|it| Ok(json!([it.speaker(), it.read_state::<Value>("shop")?])));
            let note = json!([states.collect::<Result<Vec<_>, Failure>>()?, sample.read_extra::<Value>()?]);
            Ok(Score::new(1.0).note(note.to_string()).into())
        };
        samples.iter().map(seen).collect()
    }
}

gavel_sdk::export_judger!(Witness);
