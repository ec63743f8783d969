//! Rotary embeddings for sequences longer than those that a model was first
//! trained on.

use super::foreign;
use crate::error::{PolicyError, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::f64::consts::PI;

/// How the wavelengths of the rotary embedding are changed for longer
/// sequences.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RopeScaling {
    /// Positions are divided by `factor` (arXiv:2306.15595).
    Linear {
        /// How many times as long sequences may be.
        factor: f64,
    },
    /// Long wavelengths grow by `factor`, short ones stay, and those between
    /// are blended (Llama 3.1, arXiv:2407.21783).
    Llama3 {
        /// The factor by which the longest wavelengths grow.
        factor: f64,
        /// Wavelengths above `original / low` are long.
        low: f64,
        /// Wavelengths below `original / high` are short.
        high: f64,
        /// Positions before the change.
        original: f64,
    },
    /// As `Llama3`, but by the number of turns and with sharper attention
    /// (YaRN, arXiv:2309.00071).
    Yarn {
        /// How many times as long sequences may be.
        factor: f64,
        /// Positions before the change.
        original: f64,
        /// Dimensions that turn more often than this stay.
        fast: f64,
        /// Dimensions that turn less often than this are divided by `factor`.
        slow: f64,
        /// Whether the bounds between them are whole dimensions.
        truncate: bool,
        /// Queries and keys are multiplied by it.
        attention: f64,
    },
}

impl RopeScaling {
    /// The factor of queries and keys.
    pub(crate) fn attention(self) -> f64 {
        match self {
            Self::Yarn { attention, .. } => attention,
            Self::Linear { .. } | Self::Llama3 { .. } => 1.0,
        }
    }

    /// Changes the inverse wavelengths `theta^(-i / half)`, one for each pair
    /// of dimensions.
    pub(crate) fn apply(self, inverse: &mut [f64], theta: f64) {
        match self {
            Self::Linear { factor } => inverse.iter_mut().for_each(|inverse| *inverse /= factor),
            Self::Llama3 { factor, low, high, original } => {
                for inverse in inverse {
                    let turns = original * *inverse / (2.0 * PI);
                    let kept = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                    *inverse *= kept + (1.0 - kept) / factor;
                }
            }
            Self::Yarn { factor, original, fast, slow, truncate, .. } => {
                let width = 2.0 * inverse.len() as f64;
                let dimension = |turns: f64| width * (original / (turns * 2.0 * PI)).ln() / (2.0 * theta.ln());
                let (mut first, mut last) = (dimension(fast), dimension(slow));
                if truncate {
                    (first, last) = (first.floor(), last.ceil());
                }
                let (first, last) = (first.max(0.0), last.min(width - 1.0));
                let last = if first == last { last + 0.001 } else { last };
                for (index, inverse) in inverse.iter_mut().enumerate() {
                    let divided = ((index as f64 - first) / (last - first)).clamp(0.0, 1.0);
                    *inverse *= divided / factor + (1.0 - divided);
                }
            }
        }
    }
}

/// `rope_parameters` (transformers 5) or `rope_scaling` (4) in `config.json`.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct RopeTable {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rope_theta: Option<f64>,
    #[serde(default)]
    pub(super) rope_type: Option<String>,
    /// Its former name, which transformers 4 writes beside it.
    #[serde(default, rename = "type", skip_serializing)]
    former_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    factor: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    low_freq_factor: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    high_freq_factor: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    original_max_position_embeddings: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    beta_fast: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    beta_slow: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    truncate: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attention_factor: Option<f64>,
    #[serde(default, skip_serializing)]
    mscale: Option<f64>,
    #[serde(default, skip_serializing)]
    mscale_all_dim: Option<f64>,
    #[serde(default, skip_serializing)]
    partial_rotary_factor: Option<f64>,
    /// All other keys.
    #[serde(flatten, skip_serializing)]
    #[schemars(skip)]
    unknown: BTreeMap<String, Value>,
}

/// Other keys that change nothing: the sections of a rotary embedding of images, which are all alike for text, and a
/// note of who trained the model.
const WITHOUT_EFFECT: [&str; 3] = ["finetuned", "mrope_interleaved", "mrope_section"];

impl RopeTable {
    /// The change that the table describes, if any. `positions` is the model's present number of positions, and
    /// `original` the number before the change if the file has it outside the table.
    pub(super) fn scaling(&self, positions: i64, original: Option<i64>) -> Result<Option<RopeScaling>> {
        let wrong = |what: String| Err(PolicyError::Config(what));
        let kind = self.rope_type.as_deref().or(self.former_type.as_deref()).unwrap_or("default");
        let number = |name: &str, value: Option<f64>| match value {
            Some(value) if value.is_finite() && value > 0.0 => Ok(value),
            Some(value) => {
                Err(PolicyError::Config(format!("`{name}` of the rotary embedding must be positive, not {value}")))
            }
            None => Err(PolicyError::Config(format!("a rotary embedding of type {kind:?} needs `{name}`"))),
        };
        if let Some(part) = self.partial_rotary_factor.filter(|part| *part != 1.0) {
            return wrong(format!("`partial_rotary_factor` {part} is not supported; only 1 is"));
        }
        let asks = |(key, value): &(&String, &Value)| !WITHOUT_EFFECT.contains(&key.as_str()) && foreign::asks(value);
        if let Some((key, _)) = self.unknown.iter().find(asks) {
            return wrong(format!("`{key}` of the rotary embedding is not supported; only without it"));
        }
        let original = original.or(self.original_max_position_embeddings).unwrap_or(positions);
        let original = number("original_max_position_embeddings", Some(original as f64));
        Ok(Some(match kind {
            "default" => return Ok(None),
            "linear" => RopeScaling::Linear { factor: number("factor", self.factor)? },
            "llama3" => {
                let low = number("low_freq_factor", self.low_freq_factor)?;
                let high = number("high_freq_factor", self.high_freq_factor)?;
                if high <= low {
                    return wrong(format!("`high_freq_factor` {high} must be above `low_freq_factor` {low}"));
                }
                RopeScaling::Llama3 { factor: number("factor", self.factor)?, low, high, original: original? }
            }
            "yarn" => {
                let original = original?;
                let factor = number("factor", self.factor.or(Some(positions as f64 / original)))?;
                let mscale = |scale: f64| if factor <= 1.0 { 1.0 } else { 0.1 * scale * factor.ln() + 1.0 };
                let given = |scale: Option<f64>| scale.filter(|scale| *scale != 0.0);
                let attention = match (self.attention_factor, given(self.mscale), given(self.mscale_all_dim)) {
                    (Some(factor), ..) => number("attention_factor", Some(factor))?,
                    (None, Some(one), Some(all)) => mscale(one) / mscale(all),
                    _ => mscale(1.0),
                };
                RopeScaling::Yarn {
                    factor,
                    original,
                    fast: number("beta_fast", given(self.beta_fast).or(Some(32.0)))?,
                    slow: number("beta_slow", given(self.beta_slow).or(Some(1.0)))?,
                    truncate: self.truncate.unwrap_or(true),
                    attention,
                }
            }
            other => {
                return wrong(format!(
                    "a rotary embedding of type {other:?} is not supported; \"default\", \"linear\", \"llama3\" and \"yarn\" are"
                ));
            }
        }))
    }

    /// The table as transformers 5 writes it.
    pub(super) fn new(theta: f64, scaling: Option<RopeScaling>) -> Self {
        let base = Self { rope_theta: Some(theta), ..Self::default() };
        let of = |kind: &str| Some(kind.to_owned());
        match scaling {
            None => Self { rope_type: of("default"), ..base },
            Some(RopeScaling::Linear { factor }) => Self { rope_type: of("linear"), factor: Some(factor), ..base },
            Some(RopeScaling::Llama3 { factor, low, high, original }) => Self {
                rope_type: of("llama3"),
                factor: Some(factor),
                low_freq_factor: Some(low),
                high_freq_factor: Some(high),
                original_max_position_embeddings: Some(original as i64),
                ..base
            },
            Some(RopeScaling::Yarn { factor, original, fast, slow, truncate, attention }) => Self {
                rope_type: of("yarn"),
                factor: Some(factor),
                original_max_position_embeddings: Some(original as i64),
                beta_fast: Some(fast),
                beta_slow: Some(slow),
                truncate: Some(truncate),
                attention_factor: Some(attention),
                ..base
            },
        }
    }
}
