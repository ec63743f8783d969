//! The parts of a policy loss: its keys, what it needs to know of the whole mini-batch, and the loss of a token.

use super::aggregation::Aggregation;
use crate::config::{ConfigError, check};
use crate::ranks::Message;
use gavel_torch::scalar::ScalarOperations;
use tch::{TchError, Tensor};

/// Beyond this the ratio has no meaning and its exponential no gradient in 32
/// bits.
const MAX_LOG_RATIO: f64 = 20.0;

/// A policy loss with its settings.
pub(super) trait Surrogate {
    /// The settings by their keys. An infinite value sets no limit and is not written out.
    fn keys(&mut self) -> Vec<(&'static str, &mut f64)>;

    /// Refuses values that are not valid, naming the key.
    fn validate(&self) -> Result<(), ConfigError>;

    /// How tokens become one number if the configuration does not set it.
    fn aggregation(&self) -> Aggregation {
        Aggregation::TokenMean
    }

    /// What the loss of a token depends on beyond the token, if anything.
    fn context(&self) -> Option<&dyn Context> {
        None
    }

    /// The loss of each token.
    fn token_loss(&self, tokens: &Tokens) -> Result<TokenLoss, TchError>;
}

/// What the loss of a token depends on beyond the token: its trajectory, or the whole mini-batch. It is computed before
/// the update from all of them, so that the gradient does not depend on the split into micro-batches.
pub(super) trait Context {
    /// Two numbers for each learned token of each row, which reach the loss as [`Tokens::context`].
    fn of(&self, rows: &[Vec<LearnedToken>]) -> Vec<Vec<[f64; 2]>>;
}

/// A token that is learned from, before the update.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct LearnedToken {
    /// Its log-probability under the policy.
    pub logprob: f64,
    /// The log-probability that the policy's is compared with.
    pub old: f64,
    pub advantage: f64,
    /// A pseudorandom number that depends only on the row, the token's place in it and the step.
    pub random: u64,
}

impl Message for LearnedToken {
    fn write(&self, to: &mut Vec<u8>) {
        ([self.logprob, self.old, self.advantage], self.random).write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let ([logprob, old, advantage], random) = Message::read(from)?;
        Some(Self { logprob, old, advantage, random })
    }
}

impl LearnedToken {
    pub(super) fn log_ratio(&self) -> f64 {
        self.logprob - self.old
    }
}

/// The mean of a value over tokens; 0 without tokens.
pub(super) fn mean<'a>(
    tokens: impl IntoIterator<Item = &'a LearnedToken>,
    value: impl Fn(&LearnedToken) -> f64,
) -> f64 {
    let (sum, count) = tokens.into_iter().fold((0.0, 0.0), |(sum, count), token| (sum + value(token), count + 1.0));
    sum / f64::max(count, 1.0)
}

/// The tokens of a chunk, all `[tokens]`; gradients flow through `logprobs`
/// alone.
pub(crate) struct Tokens<'a> {
    /// Log-probabilities under the policy.
    pub logprobs: &'a Tensor,
    /// The log-probabilities that the policy is compared with.
    pub old: &'a Tensor,
    pub advantages: &'a Tensor,
    /// The two numbers of [`Context::of`], for losses that have a context.
    pub context: Option<&'a [Tensor; 2]>,
}

impl Tokens<'_> {
    /// `log p − log p(old)`, within the bounds of floating point.
    pub(super) fn log_ratio(&self) -> Result<Tensor, TchError> {
        self.logprobs.f_sub(self.old)?.try_clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    }

    /// `p / p(old)`
    pub(super) fn ratio(&self) -> Result<Tensor, TchError> {
        self.log_ratio()?.f_exp()
    }

    /// The numbers of the context.
    pub(super) fn context(&self) -> Result<&[Tensor; 2], TchError> {
        self.context.ok_or_else(|| TchError::Torch("the loss has no context".into()))
    }

    /// `1` for tokens of which `is_true` holds and `0` for others, of the kind of the log-probabilities.
    pub(super) fn indicator(&self, is_true: &Tensor) -> Result<Tensor, TchError> {
        is_true.f_to_kind(self.logprobs.f_kind()?)
    }

    /// Where the advantage is above 0.
    pub(super) fn is_good(&self) -> Result<Tensor, TchError> {
        self.advantages.try_gt(0.0)
    }
}

/// The contribution of each token, all `[tokens]`.
pub(crate) struct TokenLoss {
    pub loss: Tensor,
    /// Other statistics, by name: the mean over all tokens is reported.
    pub statistics: Vec<(&'static str, Tensor)>,
}

/// How far below and above 1 a ratio counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClipRange {
    /// How far below 1.
    pub clip_low: f64,
    /// How far above 1.
    pub clip_high: f64,
}

impl ClipRange {
    pub(super) fn keys(&mut self) -> Vec<(&'static str, &mut f64)> {
        vec![("clip_low", &mut self.clip_low), ("clip_high", &mut self.clip_high)]
    }

    /// Refuses bounds that are not around 1.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        check("clip_low", self.clip_low, "at least 0 and below 1", |value| (0.0..1.0).contains(&value))?;
        self.validate_high()
    }

    pub(super) fn validate_high(&self) -> Result<(), ConfigError> {
        check("clip_high", self.clip_high, "a number of at least 0", |value| value >= 0.0)
    }

    /// `−min(ratio · A, clip(ratio, 1 − low, 1 + high) · A)`, and the statistics of the clip.
    pub(super) fn clipped(&self, ratio: &Tensor, advantages: &Tensor, tokens: &Tokens) -> Result<TokenLoss, TchError> {
        let [low, high] = [1.0 - self.clip_low, 1.0 + self.clip_high];
        let clipped = ratio.try_clamp(low, high)?;
        let surrogate = ratio.f_mul(advantages)?.f_minimum(&clipped.f_mul(advantages)?)?;
        let both = |a: Tensor, b: Tensor| tokens.indicator(&a.f_logical_and(&b)?);
        let clipped_low = both(ratio.try_lt(low)?, advantages.try_lt(0.0)?)?;
        let clipped_high = both(ratio.try_gt(high)?, advantages.try_gt(0.0)?)?;
        Ok(TokenLoss {
            loss: surrogate.f_neg()?,
            statistics: vec![
                ("clip_fraction", clipped_low.f_add(&clipped_high)?),
                ("clip_fraction_high", clipped_high),
                ("clip_fraction_low", clipped_low),
            ],
        })
    }
}
