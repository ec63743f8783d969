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
    ($($key:ident),* $(,)?) => {
        /// `[train.loss]`: the keys of every loss, and the keys that all losses share.
        #[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(crate) struct LossTable {
            pub policy: PolicyLossName,
            $(#[serde(skip_serializing_if = "Option::is_none")] pub $key: Option<f64>,)*
            pub old_logprobs: Option<OldLogProbs>,
            pub aggregation: Option<Aggregation>,
            pub norm_tokens: Option<usize>,
            #[serde(skip_serializing_if = "is_zero")]
            pub entropy_coefficient: f64,
            pub kl: Option<KlConfig>,
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
    clip_low, clip_high, clip_ratio_c, mask_low, mask_high, m2_budget, tau_pos, tau_neg, clip_cov_ratio, clip_cov_lb,
    clip_cov_ub, kl_cov_ratio, ppo_kl_coef, dro_beta,
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
