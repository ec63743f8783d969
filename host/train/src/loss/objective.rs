//! The loss of a micro-batch: its share of the mini-batch's loss.

use super::config::LossConfig;
use super::token_loss::{TokenLoss, Tokens};
use crate::error::Result;
use crate::kl::KlEstimator;
use crate::statistics::{ChunkSums, Reduction};
use gavel_torch::head::TokenLogprobs;
use gavel_torch::scalar::ScalarOperations;
use tch::Tensor;

/// The inputs of the loss for the tokens of a micro-batch, all `[tokens]` and
/// without gradients.
pub(crate) struct Targets {
    /// Their log-probabilities when they were sampled.
    pub rollout: Tensor,
    /// The log-probabilities in the denominator of the ratio; `None` for the
    /// policy's own.
    pub old: Option<Tensor>,
    /// Their log-probabilities under the reference.
    pub reference: Option<Tensor>,
    pub advantages: Tensor,
    /// Their weights in the mini-batch ([`super::Aggregation`]).
    pub weights: Tensor,
    /// The off-policy weight of each token's policy loss; `None` if all are 1.
    pub correction: Option<Tensor>,
    /// What their loss depends on beyond the token, if anything.
    pub context: Option<[Tensor; 2]>,
}

/// The loss to differentiate, a scalar, and the sums that this chunk adds to
/// the statistics of the update. `policy` has the log-probabilities under the
/// policy, and beside them the entropies; `distance` is the distance from a
/// teacher, if the loss has one.
pub(crate) fn objective(
    policy: &TokenLogprobs,
    distance: Option<&Tensor>,
    targets: &Targets,
    config: &LossConfig,
) -> Result<(Tensor, ChunkSums)> {
    let TokenLogprobs { logprobs, beside: entropies } = policy;
    let now = logprobs.f_detach()?;
    let old = targets.old.as_ref().unwrap_or(&now);
    let context = targets.context.as_ref();
    let tokens = Tokens { logprobs, old, advantages: &targets.advantages, context };
    let TokenLoss { loss, statistics } = config.policy.token_loss(&tokens)?;
    let policy_loss = match &targets.correction {
        Some(correction) => loss.f_dot(&targets.weights.f_mul(correction)?)?,
        None => loss.f_dot(&targets.weights)?,
    };
    // The distance from the policy that wrote the responses: KL(rollout ‖ policy).
    let rollout_kl = KlEstimator::K3.estimate(&targets.rollout, &now)?;
    let (mut loss, kl) = match (&config.kl, &targets.reference) {
        (Some(penalty), Some(reference)) => {
            let kl = penalty.estimator.estimate(logprobs, reference)?;
            let weighted = kl.f_dot(&targets.weights)?.try_mul(penalty.coefficient)?;
            (policy_loss.f_add(&weighted)?, kl)
        }
        // Without a reference, `kl` is the distance from rollout.
        _ => (policy_loss.shallow_clone(), rollout_kl.shallow_clone()),
    };
    if config.entropy_coefficient != 0.0 {
        let bonus = entropies.f_dot(&targets.weights)?.try_mul(config.entropy_coefficient)?;
        loss = loss.f_sub(&bonus)?;
    }
    if let (Some(distillation), Some(distance)) = (&config.distillation, distance) {
        loss = loss.f_add(&distance.f_dot(&targets.weights)?.try_mul(distillation.coefficient)?)?;
    }

    let mut sums = ChunkSums::new(&loss)?;
    sums.add("policy_loss", Reduction::Sum, &policy_loss)?;
    sums.add("kl", Reduction::TokenMean, &kl)?;
    sums.add("rollout_kl", Reduction::TokenMean, &rollout_kl)?;
    sums.add("entropy", Reduction::TokenMean, entropies)?;
    if let Some(distance) = distance {
        sums.add("distillation", Reduction::TokenMean, distance)?;
    }
    for (name, values) in &statistics {
        sums.add(name, Reduction::TokenMean, values)?;
    }
    // Only rounding, as long as this policy wrote the responses.
    let mismatch = now.f_sub(&targets.rollout)?.f_abs()?;
    sums.add("logprob_mismatch", Reduction::TokenMean, &mismatch)?;
    sums.add("logprob_mismatch_max", Reduction::TokenMax, &mismatch)?;
    Ok((loss, sums))
}
