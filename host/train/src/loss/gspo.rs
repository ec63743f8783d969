//! Group sequence policy optimization (Zheng et al., 2025, <https://arxiv.org/abs/2507.18071>): the ratio of a token is
//! the geometric mean of the ratios of its trajectory, so that a trajectory is clipped as a whole.

use super::aggregation::Aggregation;
use super::token_loss::{ClipRange, Context, LearnedToken, Surrogate, TokenLoss, Tokens, mean};
use crate::config::ConfigError;
use gavel_torch::scalar::ScalarOperations;
use tch::TchError;

/// The highest logarithm of a trajectory's ratio, the same as in verl.
const MAX_LOG_RATIO: f64 = 10.0;

/// The bounds of a trajectory's ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gspo {
    /// How far from 1 it counts; 0.0003 below and 0.0004 above by default, as published.
    pub range: ClipRange,
    /// Whether each token keeps an advantage of its own (GSPO-token, section 4.3); otherwise its advantage is the mean
    /// over the trajectory.
    pub by_token: bool,
}

impl Gspo {
    /// GSPO, or GSPO-token, with the bounds of the paper.
    pub fn new(by_token: bool) -> Self {
        Self { range: ClipRange { clip_low: 3e-4, clip_high: 4e-4 }, by_token }
    }
}

impl Surrogate for Gspo {
    fn keys(&mut self) -> Vec<(&'static str, &mut f64)> {
        self.range.keys()
    }

    fn validate(&self) -> Result<(), ConfigError> {
        self.range.validate()
    }

    fn aggregation(&self) -> Aggregation {
        Aggregation::SeqMeanTokenMean
    }

    fn context(&self) -> Option<&dyn Context> {
        Some(self)
    }

    /// `−min(s · A, clip(s) · A)` for each token, with `s = sg(s of the trajectory) · p / sg(p)`: equations 5 and 13.
    fn token_loss(&self, tokens: &Tokens) -> Result<TokenLoss, TchError> {
        let [log_ratio, advantages] = tokens.context()?;
        let no_change = tokens.logprobs.f_sub(&tokens.logprobs.f_detach()?)?;
        let ratio = no_change.f_add(log_ratio)?.try_clamp(f64::NEG_INFINITY, MAX_LOG_RATIO)?.f_exp()?;
        self.range.clipped(&ratio, advantages, tokens)
    }
}

impl Context for Gspo {
    /// The logarithm of the trajectory's ratio, and the advantage.
    fn of(&self, rows: &[Vec<LearnedToken>]) -> Vec<Vec<[f64; 2]>> {
        let row = |row: &Vec<LearnedToken>| {
            let (log_ratio, advantage) = (mean(row, LearnedToken::log_ratio), mean(row, |token| token.advantage));
            let own = |token: &LearnedToken| if self.by_token { token.advantage } else { advantage };
            row.iter().map(|token| [log_ratio, own(token)]).collect()
        };
        rows.iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::testing::{Given, assert_close, run_rows};

    #[test]
    fn a_trajectory_is_clipped_as_a_whole() {
        // Ratios 4 and 1 have the geometric mean 2, ½ and 1 have √½.
        let above = [Given::ratio(4.0, 1.0), Given::ratio(1.0, 1.0)];
        let below = [Given::ratio(0.5, 1.0), Given::ratio(1.0, 1.0)];
        let out = run_rows(&Gspo::new(false), &[&above, &below]);
        let root = 0.5f64.sqrt();
        assert_close(&out.loss, &[-1.0004, -1.0004, -root, -root]);
        // The gradient of a trajectory's ratio by each of its log-probabilities, without the 1 / length of the mean.
        assert_close(&out.gradient, &[0.0, 0.0, -root, -root]);
        assert_close(out.statistic("clip_fraction_high"), &[1.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn only_gspo_token_keeps_the_advantage_of_a_token() {
        let row = [Given::ratio(1.0, 3.0), Given::ratio(1.0, -1.0)];
        assert_close(&run_rows(&Gspo::new(false), &[&row]).loss, &[-1.0, -1.0]);
        assert_close(&run_rows(&Gspo::new(true), &[&row]).loss, &[-3.0, 1.0]);
    }
}
