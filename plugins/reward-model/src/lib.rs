//! The score of a reward model of the run, scaled and clipped.

use gavel_sdk::reward_model::Request;
use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Score, Verdict};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The name of the reward model.
    model: String,
    /// The factor of its score.
    #[serde(default = "one")]
    scale: f64,
    /// The least and the most that the score times `scale` counts.
    clip: Option<[f64; 2]>,
}

fn one() -> f64 {
    1.0
}

struct Modelled(Params);

impl Reward for Modelled {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        if !params.scale.is_finite() || params.scale == 0.0 {
            return Err(format!("scale must be a finite number other than 0, not {}", params.scale));
        }
        match params.clip {
            Some([low, high]) if low < high => Ok(Self(params)),
            Some([low, high]) => {
                Err(format!("clip must be a lower and a higher number, such as [-5, 5], not [{low}, {high}]"))
            }
            None => Ok(Self(params)),
        }
    }

    fn info(&self) -> Info {
        let info = Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        match self.0.clip {
            Some([low, high]) => info.score_range(low, high),
            None => info,
        }
    }

    fn score(&self, sample: &Sample, _: &Reference) -> Result<Verdict, Failure> {
        let Params { model, scale, clip } = &self.0;
        let mut conversation = sample.prompt();
        let mut trajectories = sample.trajectories();
        let request = match (trajectories.next(), trajectories.next()) {
            (Some(only), None) => {
                conversation.extend(only.messages());
                Request::new(model, conversation)
            }
            // What several conversations of an agent led to.
            _ => Request::new(model, conversation).assistant(sample.response()),
        };
        let raw = request.send()?;
        let score = clip.map_or(raw * scale, |[low, high]| (raw * scale).clamp(low, high));
        Ok(Score::new(score).metric("raw", raw).into())
    }
}

gavel_sdk::export_reward!(Modelled);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_make_no_score_are_refused() {
        let new = |scale, clip| Modelled::new(Params { model: "quality".into(), scale, clip }).err();
        assert_eq!(new(1.0, Some([-5.0, 5.0])), None);
        assert!(new(0.0, None).unwrap().starts_with("scale must be"));
        assert!(new(f64::NAN, None).unwrap().starts_with("scale must be"));
        assert!(new(1.0, Some([5.0, -5.0])).unwrap().starts_with("clip must be"));
        assert!(new(1.0, Some([f64::NAN, 1.0])).unwrap().starts_with("clip must be"));
    }
}
