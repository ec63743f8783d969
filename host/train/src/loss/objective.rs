//! The loss of a micro-batch: its share of the mini-batch's.

use super::vanilla::vanilla;
use super::{LossConfig, OldLogProbs, PolicyLoss};
use crate::error::Result;
use crate::kl::KlEstimator;
use crate::logprobs::target_logprobs;
use tch::{Kind, Tensor};

/// Rows of the logits whose entropy is computed at once: it needs two
/// temporaries of their size.
const ENTROPY_CHUNK: i64 = 1024;

/// What the loss needs to know about the tokens of a micro-batch, all
/// `[tokens]` and without gradients.
pub(crate) struct Targets<'a> {
    /// The tokens.
    pub ids: &'a Tensor,
    /// Their log-probabilities when they were sampled.
    pub rollout: Tensor,
    /// Their log-probabilities under the reference.
    pub reference: Option<Tensor>,
    pub advantages: Tensor,
    /// Their share in the mini-batch ([`super::Aggregation`]).
    pub weights: Tensor,
}

/// Sums over tokens, in the order in which they lie in a tensor.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Sums {
    /// Weighted.
    pub loss: f64,
    /// Weighted.
    pub policy_loss: f64,
    pub clipped_low: f64,
    pub clipped_high: f64,
    pub entropy: f64,
    /// KL(policy ‖ reference).
    pub kl: f64,
    /// KL(rollout ‖ policy).
    pub rollout_kl: f64,
    /// |log p(policy) − log p(rollout)|.
    pub mismatch: f64,
}

impl Sums {
    /// Adds up what [`objective`] gave for each micro-batch.
    pub fn collect(parts: &[Tensor]) -> Result<Self> {
        let total = Tensor::f_stack(parts, 0)?.f_sum_dim_intlist([0i64].as_slice(), false, Kind::Double)?;
        let values: Vec<f64> = Vec::try_from(total)?;
        let [loss, policy_loss, clipped_low, clipped_high, entropy, kl, rollout_kl, mismatch] = values[..] else {
            unreachable!("`objective` stacks eight sums");
        };
        Ok(Self { loss, policy_loss, clipped_low, clipped_high, entropy, kl, rollout_kl, mismatch })
    }
}

/// The loss to differentiate, a scalar, and the sums of this micro-batch, `[8]`
/// in the order of [`Sums`]. `logits`, `[tokens, vocab]`, are those after
/// division by the temperature.
pub(crate) fn objective(logits: &Tensor, targets: &Targets, config: &LossConfig) -> Result<(Tensor, Tensor)> {
    let (logprobs, normaliser) = target_logprobs(logits, targets.ids)?;
    let now = logprobs.f_detach()?;
    let old = match config.old_logprobs {
        OldLogProbs::Rollout => &targets.rollout,
        OldLogProbs::Current => &now,
    };
    let tokens = match config.policy {
        PolicyLoss::Vanilla => vanilla(&logprobs, old, &targets.advantages, config.clip_low, config.clip_high)?,
    };
    let policy_loss = tokens.loss.f_dot(&targets.weights)?;
    let (loss, kl) = match (&config.kl, &targets.reference) {
        (Some(penalty), Some(reference)) => {
            let kl = penalty.estimator.estimate(&logprobs, reference)?;
            let weighted = kl.f_dot(&targets.weights)?.f_mul_scalar(penalty.coefficient)?;
            (policy_loss.f_add(&weighted)?, kl.f_detach()?)
        }
        _ => (policy_loss.shallow_clone(), Tensor::f_zeros([1], (Kind::Double, logits.device()))?),
    };
    let sum = |tensor: &Tensor| tensor.f_detach()?.f_sum(Kind::Double);
    let sums = [
        sum(&loss)?,
        sum(&policy_loss)?,
        sum(&tokens.clipped_low)?,
        sum(&tokens.clipped_high)?,
        entropy(&logits.f_detach()?, &normaliser.f_detach()?)?,
        sum(&kl)?,
        sum(&KlEstimator::K3.estimate(&targets.rollout, &now)?)?,
        sum(&now.f_sub(&targets.rollout)?.f_abs()?)?,
    ];
    Ok((loss, Tensor::f_stack(&sums, 0)?))
}

/// The sum over tokens of the entropy of `softmax(logits)`: `log Z − Σ p · z`.
fn entropy(logits: &Tensor, normaliser: &Tensor) -> Result<Tensor> {
    let mut total = normaliser.f_sum(Kind::Double)?;
    for (z, log_z) in logits.f_split(ENTROPY_CHUNK, 0)?.iter().zip(normaliser.f_split(ENTROPY_CHUNK, 0)?) {
        let mean =
            z.f_sub(&log_z.f_unsqueeze(-1)?)?.f_exp()?.f_mul(z)?.f_sum_dim_intlist([-1i64].as_slice(), false, None)?;
        total = total.f_sub(&mean.f_sum(Kind::Double)?)?;
    }
    Ok(total)
}
