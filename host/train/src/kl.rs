//! How far the policy is from a frozen reference, estimated from the sampled
//! tokens alone (Schulman, "Approximating KL divergence", 2020,
//! <http://joschu.net/blog/kl-approx.html>).

use crate::config::{ConfigError, check};
use gavel_torch::scalar::ScalarOperations;
use serde::{Deserialize, Serialize};
use tch::{TchError, Tensor};

/// An estimator of KL(policy ‖ reference) at one sampled token, with
/// `d = log p(policy) − log p(reference)`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KlEstimator {
    /// `d`: unbiased, large variance, may be negative.
    K1,
    /// `d² / 2`: biased, small variance.
    K2,
    /// `exp(−d) − 1 + d`: unbiased, small variance, never negative.
    #[default]
    #[serde(alias = "low_var_kl")]
    K3,
}

impl KlEstimator {
    /// The estimate for each token; `policy` and `reference` are
    /// log-probabilities, all of one shape.
    pub fn estimate(self, policy: &Tensor, reference: &Tensor) -> Result<Tensor, TchError> {
        let difference = policy.f_sub(reference)?;
        match self {
            KlEstimator::K1 => Ok(difference),
            KlEstimator::K2 => difference.f_square()?.try_mul(0.5),
            KlEstimator::K3 => difference.f_neg()?.f_expm1()?.f_add(&difference),
        }
    }
}

/// The penalty on the distance from the reference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KlConfig {
    /// The estimator; `k3` by default.
    pub estimator: KlEstimator,
    /// The weight of the penalty in the loss; 0.001 by default. With 0 the
    /// distance is only measured.
    pub coefficient: f64,
}

impl Default for KlConfig {
    fn default() -> Self {
        Self { estimator: KlEstimator::K3, coefficient: 1e-3 }
    }
}

impl KlConfig {
    /// Refuses values that are not valid, naming the key.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check("coefficient", self.coefficient, "a number of at least 0", |value| value >= 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_estimator_is_its_formula() {
        let policy = [-0.5f64, -1.0, -3.0, -0.1];
        let reference = [-0.7f64, -1.0, -1.5, -2.1];
        for estimator in [KlEstimator::K1, KlEstimator::K2, KlEstimator::K3] {
            let found = estimator.estimate(&Tensor::from_slice(&policy), &Tensor::from_slice(&reference)).unwrap();
            for (token, (p, r)) in policy.iter().zip(reference).enumerate() {
                let expected = match estimator {
                    KlEstimator::K1 => p - r,
                    KlEstimator::K2 => (p - r) * (p - r) / 2.0,
                    KlEstimator::K3 => (r - p).exp() - (r - p) - 1.0,
                };
                assert!((found.double_value(&[token as i64]) - expected).abs() < 1e-12, "{estimator:?} at {token}");
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
    fn names_are_those_of_the_field() {
        let parse = |text: &str| toml::from_str::<KlConfig>(text).unwrap();
        assert_eq!(parse("estimator = 'low_var_kl'"), KlConfig::default());
        assert_eq!(parse("estimator = 'k1'").estimator, KlEstimator::K1);
        let error = parse("coefficient = -1.0").validate().unwrap_err();
        assert_eq!(error.to_string(), "coefficient must be a number of at least 0, not -1");
    }
}
