//! `[train.loss]` as it is written.

use super::aggregation::Aggregation;
use super::distillation::DistillationConfig;
use super::old_logprobs::OldLogProbs;
use super::registry::{PolicyLoss, PolicyLossName};
use crate::config::ConfigError;
use crate::kl::KlConfig;
use serde::{Deserialize, Serialize};

/// Declares the table, with the numbers that only some losses have.
macro_rules! loss_table {
    ($($(#[$about:meta])* $key:ident),* $(,)?) => {
        /// `[train.loss]`: the keys of every loss, and the keys that all losses share.
        #[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub(crate) struct LossTable {
            /// The loss of a token; PPO's clipped surrogate by default.
            pub policy: PolicyLossName,
            $($(#[$about])* #[serde(skip_serializing_if = "Option::is_none")] pub $key: Option<f64>,)*
            /// The log-probabilities in the ratio's denominator; `rollout` by default, and `proximal` with a correction of
            /// off-policy data.
            pub old_logprobs: Option<OldLogProbs>,
            /// How tokens become one number; by default as in the paper of the loss, which is `token-mean` for most.
            pub aggregation: Option<Aggregation>,
            /// The divisor of `seq-mean-token-sum-norm`, in tokens: the longest response that rollout allows.
            pub norm_tokens: Option<usize>,
            /// The entropy times this is subtracted from the loss; 0 by default.
            #[serde(skip_serializing_if = "is_zero")]
            #[schemars(extend("default" = 0.0))]
            pub entropy_coefficient: f64,
            /// A penalty on the distance from the reference; none by default.
            pub kl: Option<KlConfig>,
            /// A distance from a teacher over whole distributions; none by default.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub distillation: Option<DistillationConfig>,
        }

        impl LossTable {
            /// The number under a key that only some losses have; nothing if there is no such key.
            fn number(&mut self, key: &str) -> Option<&mut Option<f64>> {
                match key {
                    $(stringify!($key) => Some(&mut self.$key),)*
                    _ => None,
                }
            }

            /// The first of these keys that is set, with its value.
            fn first_number(&self) -> Option<(&'static str, f64)> {
                [$((stringify!($key), self.$key)),*].into_iter().find_map(|(key, value)| Some((key, value?)))
            }
        }
    };
}

loss_table! {
    /// How far below 1 the ratio of probabilities may fall before it is clipped; 0.2 by default, and another number for
    /// some losses.
    clip_low,
    /// How far above 1 the ratio may rise before it is clipped; 0.2 by default, and another number for some losses.
    clip_high,
    /// The highest ratio that counts where the advantage is negative, above 1; no limit by default.
    clip_ratio_c,
    /// The lowest ratio that is learned from; only for `icepop`, 0.5 by default.
    mask_low,
    /// The highest ratio that is learned from; only for `icepop`, 5 by default.
    mask_high,
    /// The highest mean of `(log ratio)²` over the tokens that are kept; only for `m2po`, 0.04 by default.
    m2_budget,
    /// How steep the sigmoid is where the advantage is positive; only for `sapo`, 1 by default.
    tau_pos,
    /// How steep the sigmoid is where the advantage is not positive; only for `sapo`, 1.05 by default.
    tau_neg,
    /// The share of all tokens that lose their gradient; only for `clip_cov`, 0.0002 by default.
    clip_cov_ratio,
    /// Tokens lose their gradient only with a covariance above this; only for `clip_cov`, 1 by default.
    clip_cov_lb,
    /// Tokens lose their gradient only with a covariance below this; only for `clip_cov`, 5 by default.
    clip_cov_ub,
    /// The share of all tokens that have the penalty; only for `kl_cov`, 0.0002 by default.
    kl_cov_ratio,
    /// The weight of the penalty; only for `kl_cov`, 1 by default.
    ppo_kl_coef,
    /// The weight of the squared log-ratio, above 0; only for `dro`, 0.1 by default.
    dro_beta,
}

impl LossTable {
    /// A table that asks for `loss`, with all its keys.
    pub(super) fn of(mut loss: PolicyLoss) -> Self {
        let mut table = Self { policy: loss.name(), ..Self::default() };
        for (key, value) in loss.surrogate_mut().keys() {
            if let Some(written) = table.number(key).filter(|_| value.is_finite()) {
                *written = Some(*value);
            }
        }
        table
    }

    /// The loss that the table asks for, whose keys are taken out of the table.
    pub(super) fn take_loss(&mut self) -> PolicyLoss {
        let mut loss = self.policy.loss();
        for (key, value) in loss.surrogate_mut().keys() {
            if let Some(written) = self.number(key).and_then(Option::take) {
                *value = written;
            }
        }
        loss
    }

    /// Refuses the keys of other losses, which are left after the loss took its own.
    pub(super) fn refuse_numbers(&self) -> Result<(), ConfigError> {
        match self.first_number() {
            None => Ok(()),
            Some((key, value)) => {
                let must = format!("absent: it is not a key of the loss \"{}\"", self.policy);
                Err(ConfigError::new(key, &must, value))
            }
        }
    }
}

/// Newer keys are written down only if they change something, so that older runs can be resumed.
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}
