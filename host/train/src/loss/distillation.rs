//! Distillation: a distance of whole distributions, the policy's and a teacher's, in place of the token that was drawn.

use crate::config::{ConfigError, check};
use gavel_torch::scalar::ScalarOperations;
use serde::{Deserialize, Serialize};
use tch::{Kind, TchError, Tensor};

/// The distance from a teacher.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DistillationConfig {
    /// Which divergence it is: with 0 KL(teacher ‖ policy), with 1 KL(policy ‖ teacher), between them a Jensen–Shannon
    /// divergence; 0.5 by default.
    pub beta: f64,
    /// How many of the teacher's most probable tokens count by themselves, and all others as one; 64 by default. From the
    /// size of the vocabulary on, the divergence is exact.
    pub top_k: usize,
    /// The weight in the loss; 1 by default. With 0 the distance is only measured.
    pub coefficient: f64,
}

impl Default for DistillationConfig {
    fn default() -> Self {
        Self { beta: 0.5, top_k: 64, coefficient: 1.0 }
    }
}

impl DistillationConfig {
    /// Refuses values that are not valid, naming the key.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        check("beta", self.beta, "from 0 to 1", |beta| (0.0..=1.0).contains(&beta))?;
        check("coefficient", self.coefficient, "a number of at least 0", |value| value >= 0.0)?;
        match self.top_k {
            0 => Err(ConfigError::new("top_k", "at least 1", 0)),
            _ => Ok(()),
        }
    }

    /// The generalised Jensen–Shannon divergence of distributions whose log-probabilities are `[tokens, outcomes]`
    /// (Agarwal et al., "On-policy distillation of language models", 2023, <https://arxiv.org/abs/2306.13649>, equation
    /// 1, as in TRL's `GKDTrainer`): `beta · KL(teacher ‖ m) + (1 − beta) · KL(policy ‖ m)` with the mixture
    /// `m = beta · teacher + (1 − beta) · policy`. At 0 and at 1, where this is 0, it is what it tends to after a division
    /// by `beta` or by `1 − beta`.
    pub(crate) fn divergence(&self, policy: &Tensor, teacher: &Tensor) -> Result<Tensor, TchError> {
        let beta = self.beta;
        if beta == 0.0 {
            return kl(teacher, policy);
        }
        if beta == 1.0 {
            return kl(policy, teacher);
        }
        let mixture = policy.try_add((1.0 - beta).ln())?.f_logaddexp(&teacher.try_add(beta.ln())?)?;
        kl(teacher, &mixture)?.try_mul(beta)?.f_add(&kl(policy, &mixture)?.try_mul(1.0 - beta)?)
    }
}

/// KL(of ‖ from), `[tokens]`, of log-probabilities, `[tokens, outcomes]`.
fn kl(of: &Tensor, from: &Tensor) -> Result<Tensor, TchError> {
    of.f_exp()?.f_mul(&of.f_sub(from)?)?.f_sum_dim_intlist([-1i64].as_slice(), false, None::<Kind>)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `GKDTrainer.generalized_jsd_loss` of TRL 1.16.0 computes of these logits at the temperature 0.7:
    ///
    /// ```python
    /// s, t = F.log_softmax(student / 0.7, -1), F.log_softmax(teacher / 0.7, -1)
    /// if beta == 0: F.kl_div(s, t, reduction="none", log_target=True)    # exp(t) * (t - s)
    /// elif beta == 1: F.kl_div(t, s, reduction="none", log_target=True)  # exp(s) * (s - t)
    /// else:
    ///     m = torch.logsumexp(torch.stack([s + torch.log1p(-beta), t + torch.log(beta)]), dim=0)
    ///     beta * F.kl_div(m, t, …) + (1 - beta) * F.kl_div(m, s, …)
    /// ```
    #[test]
    fn the_divergence_is_that_of_gkd_in_trl() {
        let logprobs = |logits: &[[f64; 5]; 2]| {
            let logits = Tensor::from_slice(logits.as_flattened()).view([2, 5]) / 0.7;
            logits.log_softmax(-1, Kind::Double)
        };
        let student = logprobs(&[[0.3, -1.2, 2.0, 0.0, 0.7], [1.5, 1.5, -3.0, 0.25, -0.5]]);
        let teacher = logprobs(&[[-0.4, 0.9, 1.1, -2.0, 0.7], [0.0, 4.0, -1.0, -1.5, 2.0]]);
        for (beta, expected) in [
            (0.0, [0.9972989676867978, 0.7199698836925528]),
            (0.1, [0.06880562546081215, 0.06656158319492667]),
            (0.5, [0.1367152081493967, 0.2196476597632849]),
            (0.9, [0.043988501915910805, 0.12460911781215801]),
            (1.0, [0.4854508326287743, 2.283475174246302]),
        ] {
            let found = DistillationConfig { beta, ..Default::default() }.divergence(&student, &teacher).unwrap();
            let found = Vec::<f64>::try_from(found).unwrap();
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{beta}: {found:?}");
        }
    }
}
