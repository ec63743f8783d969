//! How far the policy is from a frozen reference, estimated from the sampled
//! tokens alone (Schulman, "Approximating KL divergence", 2020,
//! <http://joschu.net/blog/kl-approx.html>).

use crate::config::{ConfigError, check};
use gavel_torch::scalar::ScalarOperations;
use serde::{Deserialize, Serialize};
use tch::{TchError, Tensor};

/// The bound of a difference of log-probabilities in `k3`, the same as in verl.
const MAX_DIFFERENCE: f64 = 20.0;

/// The highest estimate of `k3`, the same as in verl.
const MAX_K3: f64 = 10.0;

/// The bound of the relative error by which an adaptive weight changes.
const MAX_ERROR: f64 = 0.2;

/// The default of `horizon`, the same as in verl.
const HORIZON: f64 = 1e4;

/// An estimator of KL(policy ‖ reference) at one sampled token, with `d = log p(policy) − log p(reference)`. With a
/// `+`, the value is the estimator's and the gradient is `k2`'s, which is the gradient of the divergence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KlEstimator {
    /// `d`: unbiased, large variance, may be negative. Its gradient has the mean 0.
    #[serde(alias = "kl")]
    K1,
    /// `d² / 2`: biased, small variance.
    #[serde(alias = "mse")]
    K2,
    /// `exp(−d) − 1 + d`, at most 10: unbiased, small variance, never negative.
    #[default]
    #[serde(alias = "low_var_kl")]
    K3,
    /// `|d|`
    Abs,
    /// `k1` with the gradient of `k2`.
    #[serde(rename = "k1+", alias = "kl+")]
    K1Through,
    /// `k3` with the gradient of `k2`.
    #[serde(rename = "k3+", alias = "low_var_kl+")]
    K3Through,
    /// `abs` with the gradient of `k2`.
    #[serde(rename = "abs+")]
    AbsThrough,
}

impl KlEstimator {
    /// The estimate for each token; `policy` and `reference` are
    /// log-probabilities, all of one shape.
    pub fn estimate(self, policy: &Tensor, reference: &Tensor) -> Result<Tensor, TchError> {
        let difference = policy.f_sub(reference)?;
        let straight_through = |value: Self| {
            let (value, gradient) =
                (value.estimate(policy, reference)?.f_detach()?, difference.f_square()?.try_mul(0.5)?);
            gradient.f_sub(&gradient.f_detach()?)?.f_add(&value)
        };
        match self {
            Self::K1 => Ok(difference),
            Self::K2 => difference.f_square()?.try_mul(0.5),
            Self::K3 => {
                let bounded = difference.try_clamp(-MAX_DIFFERENCE, MAX_DIFFERENCE)?;
                bounded.f_neg()?.f_expm1()?.f_add(&bounded)?.try_clamp(-MAX_K3, MAX_K3)
            }
            Self::Abs => difference.f_abs(),
            Self::K1Through => straight_through(Self::K1),
            Self::K3Through => straight_through(Self::K3),
            Self::AbsThrough => straight_through(Self::Abs),
        }
    }

    /// The estimate for a token with the difference `d`.
    pub fn of_difference(self, difference: f64) -> f64 {
        match self {
            Self::K1 | Self::K1Through => difference,
            Self::K2 => difference * difference / 2.0,
            Self::K3 | Self::K3Through => {
                let bounded = difference.clamp(-MAX_DIFFERENCE, MAX_DIFFERENCE);
                ((-bounded).exp_m1() + bounded).clamp(-MAX_K3, MAX_K3)
            }
            Self::Abs | Self::AbsThrough => difference.abs(),
        }
    }
}

/// The penalty on the distance from the reference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KlConfig {
    /// The estimator; `k3` by default.
    pub estimator: KlEstimator,
    /// The weight of the penalty; 0.001 by default. With 0 the
    /// distance is only measured.
    pub coefficient: f64,
    /// The distance that an adaptive weight aims at; without it, the weight does not change. None by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
    /// How many samples it takes to change the weight by the relative error of the distance, which counts at most 0.2;
    /// 10000 by default, only with `target`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub horizon: Option<f64>,
}

impl Default for KlConfig {
    fn default() -> Self {
        Self { estimator: KlEstimator::K3, coefficient: 1e-3, target: None, horizon: None }
    }
}

impl KlConfig {
    /// Refuses values that are not valid, naming the key.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check("coefficient", self.coefficient, "a number of at least 0", |value| value >= 0.0)?;
        if let (Some(horizon), None) = (self.horizon, self.target) {
            return Err(ConfigError::new("horizon", "absent without `target`", horizon));
        }
        for (key, value) in [("target", self.target), ("horizon", self.horizon)] {
            check(key, value.unwrap_or(1.0), "a number above 0", |value| value > 0.0)?;
        }
        Ok(())
    }

    /// The same with the weight for the next step, after a step of `samples` samples with the mean distance `kl`
    /// (Ziegler et al., "Fine-tuning language models from human preferences", 2019, section 2.2). It does not change
    /// without a target.
    pub fn adapted(mut self, kl: f64, samples: usize) -> Self {
        if let Some(target) = self.target.filter(|_| kl.is_finite()) {
            let error = (kl / target - 1.0).clamp(-MAX_ERROR, MAX_ERROR);
            self.coefficient *= 1.0 + error * samples as f64 / self.horizon.unwrap_or(HORIZON);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [KlEstimator; 7] = [
        KlEstimator::K1,
        KlEstimator::K2,
        KlEstimator::K3,
        KlEstimator::Abs,
        KlEstimator::K1Through,
        KlEstimator::K3Through,
        KlEstimator::AbsThrough,
    ];

    #[test]
    fn each_estimator_is_its_formula() {
        let policy = [-0.5f64, -1.0, -3.0, -0.1, -40.0, 0.0];
        let reference = [-0.7f64, -1.0, -1.5, -2.1, 0.0, -40.0];
        for estimator in ALL {
            let logprobs = Tensor::from_slice(&policy).set_requires_grad(true);
            let found = estimator.estimate(&logprobs, &Tensor::from_slice(&reference)).unwrap();
            found.sum(tch::Kind::Double).backward();
            for (token, (p, r)) in policy.iter().zip(reference).enumerate() {
                let d = p - r;
                let k3 = ((-d.clamp(-20.0, 20.0)).exp() - 1.0 + d.clamp(-20.0, 20.0)).min(10.0);
                let slope_of_k3 = if k3 < 10.0 && d.abs() <= 20.0 { 1.0 - (-d).exp() } else { 0.0 };
                let (value, slope) = match estimator {
                    KlEstimator::K1 => (d, 1.0),
                    KlEstimator::K2 => (d * d / 2.0, d),
                    KlEstimator::K3 => (k3, slope_of_k3),
                    KlEstimator::Abs => (d.abs(), if d == 0.0 { 0.0 } else { d.signum() }),
                    KlEstimator::K1Through => (d, d),
                    KlEstimator::K3Through => (k3, d),
                    KlEstimator::AbsThrough => (d.abs(), d),
                };
                let (at, gradient) = ([token as i64], logprobs.grad());
                assert!((found.double_value(&at) - value).abs() < 1e-12, "{estimator:?} at {token}");
                assert!((gradient.double_value(&at) - slope).abs() < 1e-12, "{estimator:?} at {token}");
                assert!((estimator.of_difference(d) - value).abs() < 1e-12, "{estimator:?} at {token}");
            }
        }
    }

    #[test]
    fn k1_and_k3_have_the_divergence_as_their_mean() {
        let policy = [0.5f64, 0.3, 0.2];
        let reference = [0.2f64, 0.2, 0.6];
        let divergence: f64 = policy.iter().zip(reference).map(|(p, r)| p * (p / r).ln()).sum();
        let logs = |values: &[f64]| Tensor::from_slice(values).log();
        for estimator in [KlEstimator::K1, KlEstimator::K3] {
            let found = estimator.estimate(&logs(&policy), &logs(&reference)).unwrap();
            let mean = found.dot(&Tensor::from_slice(&policy)).double_value(&[]);
            assert!((mean - divergence).abs() < 1e-12, "{estimator:?}: {mean} is not {divergence}");
        }
    }

    #[test]
    fn an_adaptive_weight_follows_its_target() {
        let weight = |kl: f64, text: &str| toml::from_str::<KlConfig>(text).unwrap().adapted(kl, 50).coefficient;
        let adaptive = "coefficient = 0.5\ntarget = 0.1\nhorizon = 100.0";
        // 10 % too far, then beyond the largest error on both sides.
        assert!((weight(0.11, adaptive) - 0.5 * 1.05).abs() < 1e-12);
        assert!((weight(9.0, adaptive) - 0.5 * 1.1).abs() < 1e-12);
        assert!((weight(0.0, adaptive) - 0.5 * 0.9).abs() < 1e-12);
        assert_eq!(weight(9.0, "coefficient = 0.5"), 0.5);
    }

    #[test]
    fn names_are_those_of_the_field() {
        let parse = |text: &str| toml::from_str::<KlConfig>(text).unwrap();
        assert_eq!(parse("estimator = 'low_var_kl'"), KlConfig::default());
        assert_eq!(parse("estimator = 'k1'").estimator, KlEstimator::K1);
        assert_eq!(parse("estimator = 'k3+'").estimator, KlEstimator::K3Through);
        let error = parse("horizon = 10.0").validate().unwrap_err();
        assert_eq!(error.to_string(), "horizon must be absent without `target`, not 10");
        let error = parse("target = 0.0").validate().unwrap_err();
        assert_eq!(error.to_string(), "target must be a number above 0, not 0");
        let error = parse("coefficient = -1.0").validate().unwrap_err();
        assert_eq!(error.to_string(), "coefficient must be a number of at least 0, not -1");
    }
}
