//! A reward that tells the speakers of a sample apart: each has a reward of its
//! own, from what it said last.

use gavel_sdk::{Failure, Info, NoParams, Reference, Reward, Sample, Score, Verdict};

struct Speakers;

impl Reward for Speakers {
    type Params = NoParams;

    fn new(_: NoParams) -> Result<Self, String> {
        Ok(Self)
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
    }

    fn score(&self, sample: &Sample, _: &Reference) -> Result<Verdict, Failure> {
        let mut score = Score::new(0.0);
        for trajectory in sample.trajectories() {
            let last = trajectory.message(trajectory.message_count() - 1);
            let said = last.map(|message| message.text()).unwrap_or_default();
            let sum: u32 = said.bytes().map(u32::from).sum();
            score = score.metric(format!("reward/{}", trajectory.speaker()), f64::from(sum % 5));
        }
        Ok(score.into())
    }
}

gavel_sdk::export_reward!(Speakers);
