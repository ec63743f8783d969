//! A penalty that grows as a response nears the longest allowed: 0 for short
//! ones, `-factor` for the longest. It is the soft overlong punishment of DAPO
//! as a separate reward, to add to any other.

use answer_rules::Overlong;
use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Score, Trajectory, Verdict};
use serde::Deserialize;

struct Length {
    overlong: Overlong,
    unit: Unit,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The longest response, in `unit`.
    max_response: u32,
    /// The last part of it, over which the penalty grows.
    buffer: u32,
    /// The penalty of the longest response.
    #[serde(default = "Overlong::default_factor")]
    factor: f64,
    /// What is counted.
    #[serde(default)]
    unit: Unit,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Unit {
    /// What the policy wrote.
    #[default]
    Tokens,
    /// The text of the response, in Unicode's code points.
    Characters,
}

impl Reward for Length {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        let Params { max_response, buffer, factor, unit } = params;
        let overlong = Overlong { max_response, buffer, factor };
        overlong.check()?;
        Ok(Self { overlong, unit })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure().score_range(-self.overlong.factor, 0.0)
    }

    fn score(&self, sample: &Sample, _: &Reference) -> Result<Verdict, Failure> {
        let length =
            sample.trajectories().filter_map(|trajectory| self.unit.count(&trajectory)).max().ok_or_else(|| {
                Failure::invalid_input(
                    "the number of tokens is unknown, since no policy wrote the response: set `unit = \"characters\"`",
                )
            })?;
        let penalty = self.overlong.penalty(length);
        Ok(Score::new(penalty).metric("length", length.into()).metric("overlong", f64::from(penalty < 0.0)).into())
    }
}

gavel_sdk::export_reward!(Length);

impl Unit {
    fn count(self, trajectory: &Trajectory) -> Option<u32> {
        match self {
            Self::Tokens => trajectory.response_tokens(),
            Self::Characters => Some(trajectory.response().chars().count().try_into().unwrap_or(u32::MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(max_response: u32, buffer: u32) -> Params {
        Params { max_response, buffer, factor: 1.0, unit: Unit::Tokens }
    }

    #[test]
    fn a_buffer_that_does_not_fit_is_refused() {
        assert!(Length::new(params(100, 20)).is_ok());
        assert!(Length::new(params(100, 101)).err().unwrap().starts_with("`buffer` (101)"));
        assert!(Length::new(params(100, 0)).err().unwrap().starts_with("`buffer` is 0"));
    }
}
