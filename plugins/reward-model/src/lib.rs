//! The score of a reward model of the run, scaled and clipped, and the values of its steps as credit.

use gavel_sdk::reward_model::{Request, Step};
use gavel_sdk::{Credit, Failure, Info, Message, Reference, Reward, Role, Sample, Score, Verdict};
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
    /// The factor of the values of steps as credit; without it, there is no credit.
    credit: Option<f64>,
}

fn one() -> f64 {
    1.0
}

struct Modelled(Params);

impl Reward for Modelled {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        for (name, factor) in [("scale", Some(params.scale)), ("credit", params.credit)] {
            if let Some(factor) = factor.filter(|factor| !factor.is_finite() || *factor == 0.0) {
                return Err(format!("{name} must be a finite number other than 0, not {factor}"));
            }
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
        let Params { model, scale, clip, credit } = &self.0;
        let mut conversation = sample.prompt();
        let mut trajectories = sample.trajectories();
        let (request, messages) = match (trajectories.next(), trajectories.next()) {
            (Some(only), None) => {
                let messages: Vec<Message> = only.messages().collect();
                conversation.extend(only.messages());
                (Request::new(model, conversation), messages)
            }
            // The answer to which several conversations of an agent led.
            _ => (Request::new(model, conversation).assistant(sample.response()), Vec::new()),
        };
        let scores = request.send_steps()?;
        let raw = scores.score;
        let value = clip.map_or(raw * scale, |[low, high]| (raw * scale).clamp(low, high));
        let mut score = Score::new(value).metric("raw", raw);
        if !scores.steps.is_empty() {
            score = score.metric("steps", scores.steps.len() as f64);
        }
        // Steps of a message that the policy did not write cannot be learned from.
        let last = messages.len().checked_sub(1).filter(|last| messages[*last].role == Role::Assistant);
        if let (Some(credit), Some(last)) = (credit, last) {
            let given = |Step { start, end, value }: Step| Credit {
                trajectory: 0,
                message: last as u32,
                start,
                end,
                value: credit * value,
            };
            score.credit = scores.steps.into_iter().map(given).collect();
        }
        Ok(score.into())
    }
}

gavel_sdk::export_reward!(Modelled);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_make_no_score_are_refused() {
        let params = |scale, clip, credit| Params { model: "quality".into(), scale, clip, credit };
        let new = |scale, clip| Modelled::new(params(scale, clip, None)).err();
        assert_eq!(new(1.0, Some([-5.0, 5.0])), None);
        assert!(new(0.0, None).unwrap().starts_with("scale must be"));
        assert!(new(f64::NAN, None).unwrap().starts_with("scale must be"));
        assert!(new(1.0, Some([5.0, -5.0])).unwrap().starts_with("clip must be"));
        assert!(new(1.0, Some([f64::NAN, 1.0])).unwrap().starts_with("clip must be"));
        assert!(Modelled::new(params(1.0, None, Some(0.0))).err().unwrap().starts_with("credit must be"));
    }
}
