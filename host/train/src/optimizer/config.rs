//! The settings of the optimiser.

use crate::config::{ConfigError, check};
use serde::{Deserialize, Serialize};

/// The settings of the optimiser, besides the learning rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OptimizerConfig {
    /// The rule of a step; AdamW by default.
    pub kind: OptimizerKind,
    /// Decay of the running means of gradient and squared gradient; `[0.9,
    /// 0.999]` by default.
    pub betas: [f64; 2],
    /// Added to the denominator; 1e-8 by default.
    pub eps: f64,
    /// Decoupled weight decay, times the learning rate a step; 0.01 by default.
    /// Norms and biases do not decay.
    pub weight_decay: f64,
    /// A gradient with a larger 2-norm is scaled down to it; 1 by default,
    /// `inf` for never.
    pub max_grad_norm: f64,
    /// The settings of Muon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub muon: Option<MuonConfig>,
}

/// The rule of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OptimizerKind {
    /// AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization", 2019).
    #[default]
    Adamw,
    /// AdamW whose running means have 8 bits (Dettmers et al., "8-bit optimizers via block-wise quantization",
    /// arXiv:2110.02861).
    #[serde(rename = "adamw_8bit")]
    Adamw8Bit,
    /// Muon for the matrices of layers (Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024),
    /// and AdamW for all other parameters.
    Muon,
}

/// The settings of Muon.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MuonConfig {
    /// Decay of the running mean of the gradient; 0.95 by default.
    pub momentum: f64,
    /// Whether the update is the mean as it would be after another step with the same gradient; yes by default.
    pub nesterov: bool,
    /// Steps of the iteration that makes the update orthogonal; 5 by default.
    pub ns_steps: u32,
    /// How the learning rate depends on the shape of a matrix.
    pub adjust_lr: AdjustLr,
}

/// How Muon's learning rate depends on the shape of a matrix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdjustLr {
    /// Times 0.2 · √(the longer side): updates are as large as AdamW's, and one learning rate suits both (Liu et al.,
    /// "Muon is scalable for LLM training", arXiv:2502.16982).
    #[default]
    MatchRmsAdamw,
    /// Times √(rows / columns) where there are more rows than columns.
    Original,
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self {
            kind: OptimizerKind::default(),
            betas: [0.9, 0.999],
            eps: 1e-8,
            weight_decay: 0.01,
            max_grad_norm: 1.0,
            muon: None,
        }
    }
}

impl Default for MuonConfig {
    fn default() -> Self {
        Self { momentum: 0.95, nesterov: true, ns_steps: 5, adjust_lr: AdjustLr::default() }
    }
}

impl OptimizerConfig {
    /// Refuses values that are not valid, naming the key.
    pub fn validate(&self) -> Result<(), ConfigError> {
        for beta in self.betas {
            check("betas", beta, "two numbers of at least 0 and below 1", |beta| (0.0..1.0).contains(&beta))?;
        }
        check("eps", self.eps, "a number above 0", |eps| eps > 0.0)?;
        check("weight_decay", self.weight_decay, "a number of at least 0", |decay| decay >= 0.0)?;
        match self.max_grad_norm {
            norm if norm > 0.0 => {}
            norm => return Err(ConfigError::new("max_grad_norm", "a number above 0, or inf", norm)),
        }
        match (self.muon, self.kind) {
            (Some(muon), OptimizerKind::Muon) => muon.validate().map_err(|error| error.within("muon")),
            (Some(_), kind) => {
                Err(ConfigError::new("kind", "`muon` beside a table `muon`", format!("`{}`", kind.name())))
            }
            (None, _) => Ok(()),
        }
    }
}

impl OptimizerKind {
    /// All kinds.
    pub(super) const ALL: [Self; 3] = [Self::Adamw, Self::Adamw8Bit, Self::Muon];

    /// Its name in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Adamw => "adamw",
            Self::Adamw8Bit => "adamw_8bit",
            Self::Muon => "muon",
        }
    }
}

impl MuonConfig {
    fn validate(&self) -> Result<(), ConfigError> {
        check("momentum", self.momentum, "a number of at least 0 and below 1", |mean| (0.0..1.0).contains(&mean))?;
        match self.ns_steps {
            1..100 => Ok(()),
            steps => Err(ConfigError::new("ns_steps", "from 1 to 99", steps)),
        }
    }
}
