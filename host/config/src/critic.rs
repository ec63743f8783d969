//! `[train.critic]`: the model of `gae` that says before each token which return it expects.

use crate::error::ConfigError;
use gavel_policy::{Dtype, LoraConfig};
use gavel_train::{
    AdjustLr, MuonConfig, OptimizerConfig, OptimizerKind, Schedule, ScheduleConfig, ScheduleKind, ValueLossConfig,
};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// `[train.critic]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CriticTable {
    /// A folder or the name of a model on the hub: a critic, a reward model or a language model; by default, what the
    /// policy starts from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// `cpu` or `cuda:N`; the policy's device by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The dtype of the weights; the policy's by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtype: Option<Dtype>,
    /// Its adapters; by default, all weights are trained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lora: Option<LoraConfig>,
    /// The learning rate after the warm-up; 1e-5 by default.
    pub learning_rate: f64,
    /// Steps in which the rate rises to `learning_rate`; 0 by default.
    pub warmup_steps: u64,
    /// Steps at the beginning of the run in which only the critic learns; 0 by default.
    pub steps_alone: u64,
    /// How far the updates of a step may move a value; 0.5 by default.
    pub cliprange_value: f64,
    /// The optimiser's settings.
    pub optimizer: CriticOptimizerTable,
}

/// `[train.critic.optimizer]`. A key that is absent has the value that it has in `[train.optimizer]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CriticOptimizerTable {
    /// The rule of a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<OptimizerKind>,
    /// Decay of the running means of gradient and squared gradient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub betas: Option<[f64; 2]>,
    /// Added to the denominator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eps: Option<f64>,
    /// Decoupled weight decay, times the learning rate a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_decay: Option<f64>,
    /// A gradient with a larger 2-norm is scaled down to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_grad_norm: Option<f64>,
    /// The settings of Muon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub muon: Option<CriticMuonTable>,
}

/// `[train.critic.optimizer.muon]`. A key that is absent has the value that it has in `[train.optimizer.muon]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CriticMuonTable {
    /// Decay of the running mean of the gradient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub momentum: Option<f64>,
    /// Whether the update is the mean as it would be after another step with the same gradient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nesterov: Option<bool>,
    /// Steps of the iteration that makes the update orthogonal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ns_steps: Option<u32>,
    /// How the learning rate depends on the shape of a matrix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adjust_lr: Option<AdjustLr>,
}

impl CriticOptimizerTable {
    /// The settings in a run whose `[train.optimizer]` is `policy`.
    pub fn beside(&self, policy: &OptimizerConfig) -> OptimizerConfig {
        let kind = self.kind.unwrap_or(policy.kind);
        let muon = policy.muon.filter(|_| kind == OptimizerKind::Muon);
        OptimizerConfig {
            kind,
            betas: self.betas.unwrap_or(policy.betas),
            eps: self.eps.unwrap_or(policy.eps),
            weight_decay: self.weight_decay.unwrap_or(policy.weight_decay),
            max_grad_norm: self.max_grad_norm.unwrap_or(policy.max_grad_norm),
            muon: self.muon.map(|own| own.beside(muon.unwrap_or_default())).or(muon),
        }
    }
}

impl From<OptimizerConfig> for CriticOptimizerTable {
    fn from(whole: OptimizerConfig) -> Self {
        let OptimizerConfig { kind, betas, eps, weight_decay, max_grad_norm, muon } = whole;
        Self {
            kind: Some(kind),
            betas: Some(betas),
            eps: Some(eps),
            weight_decay: Some(weight_decay),
            max_grad_norm: Some(max_grad_norm),
            muon: muon.map(CriticMuonTable::from),
        }
    }
}

impl CriticMuonTable {
    /// The settings in a run whose policy has the settings `policy`.
    fn beside(&self, policy: MuonConfig) -> MuonConfig {
        MuonConfig {
            momentum: self.momentum.unwrap_or(policy.momentum),
            nesterov: self.nesterov.unwrap_or(policy.nesterov),
            ns_steps: self.ns_steps.unwrap_or(policy.ns_steps),
            adjust_lr: self.adjust_lr.unwrap_or(policy.adjust_lr),
        }
    }
}

impl From<MuonConfig> for CriticMuonTable {
    fn from(whole: MuonConfig) -> Self {
        let MuonConfig { momentum, nesterov, ns_steps, adjust_lr } = whole;
        Self {
            momentum: Some(momentum),
            nesterov: Some(nesterov),
            ns_steps: Some(ns_steps),
            adjust_lr: Some(adjust_lr),
        }
    }
}

impl Default for CriticTable {
    fn default() -> Self {
        Self {
            path: None,
            device: None,
            dtype: None,
            lora: None,
            learning_rate: 1e-5,
            warmup_steps: 0,
            steps_alone: 0,
            cliprange_value: ValueLossConfig::default().cliprange_value,
            optimizer: CriticOptimizerTable::default(),
        }
    }
}

impl CriticTable {
    /// The value loss.
    pub fn loss(&self) -> ValueLossConfig {
        ValueLossConfig { cliprange_value: self.cliprange_value }
    }

    /// The learning rate in a run of `steps` steps.
    ///
    /// # Errors
    /// A key is out of range.
    pub fn schedule(&self, steps: u64) -> Result<Schedule, ConfigError> {
        let (learning_rate, warmup_steps) = (self.learning_rate, self.warmup_steps);
        let config = ScheduleConfig { learning_rate, warmup_steps, kind: ScheduleKind::Constant, min_ratio: 0.0 };
        let schedule = config.over(steps).map_err(|error| error.within("train.critic"))?;
        if self.steps_alone >= steps {
            let must = format!("below the steps of the run ({steps}): the policy would learn nothing");
            return Err(ConfigError::value("train.critic.steps_alone", &must, self.steps_alone));
        }
        Ok(schedule)
    }

    /// Refuses values out of range, naming the key; `policy` is `[train.optimizer]`.
    pub(super) fn validate(&self, steps: u64, policy: &OptimizerConfig) -> Result<(), ConfigError> {
        if let Some(lora) = &self.lora {
            lora.validate().map_err(|error| ConfigError::about("train.critic.lora", "train.critic.lora", error))?;
        }
        self.schedule(steps)?;
        self.loss().validate().map_err(|error| error.within("train.critic"))?;
        Ok(self.optimizer.beside(policy).validate().map_err(|error| error.within("train.critic.optimizer"))?)
    }

    /// Replaces the name of a model on the hub by its local folder.
    pub(super) fn find_on_hub(&mut self) -> Result<(), ConfigError> {
        if let Some(path) = &mut self.path {
            let found = gavel_hub::model(path);
            *path = found.map_err(|error| ConfigError::of("train.critic.path", error))?.into_owned();
        }
        Ok(())
    }
}
