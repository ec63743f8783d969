//! Scores 1 where the final answer to a mathematical question is right and -1
//! where it is not: the rule of verl for `math_dapo`. A run can add DAPO's soft
//! penalty of length.

mod answer;
mod normalize;

use answer::Reader;
use answer_rules::Overlong;
use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Score, Verdict};
use serde::Deserialize;

struct DapoMath {
    reader: Reader,
    overlong: Option<Overlong>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The penalty of length, in tokens; none by default.
    overlong: Option<Overlong>,
}

impl Reward for DapoMath {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        if let Some(overlong) = &params.overlong {
            overlong.check().map_err(|error| format!("`overlong`: {error}"))?;
        }
        let reader = Reader::new().map_err(|error| format!("a pattern of the rule does not compile: {error}"))?;
        Ok(Self { reader, overlong: params.overlong })
    }

    fn info(&self) -> Info {
        let lowest = -1.0 - self.overlong.map_or(0.0, |overlong| overlong.factor);
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure().score_range(lowest, 1.0)
    }

    fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure> {
        let truth = reference.require_ground_truth()?;
        let key = self.reader.key(&truth).ok_or_else(|| {
            Failure::invalid_input(format!(
                "nothing of the ground truth {truth:?} is left to compare with after normalisation: \
                 no answer would equal it"
            ))
        })?;
        let answer = self.reader.answer(&sample.response());
        let right = answer.as_ref().is_some_and(|answer| answer.is(&key, &truth));
        let penalty =
            self.overlong.map(|overlong| tokens(sample).map(|tokens| overlong.penalty(tokens))).transpose()?;
        let mut score = Score::new(if right { 1.0 } else { -1.0 } + penalty.unwrap_or(0.0))
            .metric("acc", f64::from(right))
            .metric("answered", f64::from(answer.is_some()));
        if let Some(penalty) = penalty {
            score = score.metric("overlong_reward", penalty).metric("overlong", f64::from(penalty < 0.0));
        }
        let note = answer.map_or_else(|| r"neither `Answer:` nor \boxed{…} at the end".into(), |answer| answer.text);
        Ok(score.note(note).into())
    }
}

gavel_sdk::export_reward!(DapoMath);

/// The tokens of the longest trajectory.
fn tokens(sample: &Sample) -> Result<u32, Failure> {
    sample.trajectories().filter_map(|trajectory| trajectory.response_tokens()).max().ok_or_else(|| {
        Failure::invalid_input(
            "the number of tokens is unknown, since no policy wrote the response: leave `overlong` out",
        )
    })
}
