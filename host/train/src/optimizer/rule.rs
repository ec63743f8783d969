//! How a step changes a parameter, and the state that it needs.

use super::config::{AdjustLr, MuonConfig, OptimizerConfig, OptimizerKind};
use crate::error::Result;
use gavel_policy::Stage;
use gavel_torch::optimizer::{self as torch, AdamWStep, BLOCK, MuonStep};
use tch::{Kind, Tensor};

/// Running means of fewer numbers have 32 bits: they save little, and the means of small parameters vary more.
const LEAST_OF_8_BITS: usize = 4096;

/// The rule of one parameter.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Rule {
    AdamW,
    AdamW8Bit,
    Muon {
        /// The rows of each of the matrices that lie one below the other in the parameter.
        rows: Vec<i64>,
    },
}

/// A tensor of the state of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StateTensor {
    /// Its name in a file, before the parameter's.
    pub what: &'static str,
    pub kind: Kind,
    pub size: Vec<i64>,
}

/// Whether the running means of a parameter have 8 bits where the optimiser's do.
pub(crate) fn has_8_bits(numbers: usize) -> bool {
    numbers >= LEAST_OF_8_BITS && numbers.is_multiple_of(BLOCK)
}

/// Whether Muon is the rule of a parameter where it is the optimiser's.
pub(crate) fn is_for_muon(is_of_layer: bool, is_matrix: bool) -> bool {
    is_of_layer && is_matrix
}

impl Rule {
    /// The rule of a parameter with this name. `rows` are the rows of each of its matrices.
    pub fn of(
        kind: OptimizerKind,
        name: &str,
        parameter: &Tensor,
        rows: impl Fn() -> Result<Vec<i64>>,
    ) -> Result<Self> {
        let is_of_layer = matches!(Stage::of(name), Stage::Layer(_));
        Ok(match kind {
            OptimizerKind::Adamw8Bit if has_8_bits(parameter.numel()) => Self::AdamW8Bit,
            OptimizerKind::Muon if is_for_muon(is_of_layer, parameter.dim() == 2) => Self::Muon { rows: rows()? },
            _ => Self::AdamW,
        })
    }

    /// The state of a parameter of this shape and kind.
    pub fn state(&self, parameter: &Tensor) -> Vec<StateTensor> {
        let whole = |what, kind| StateTensor { what, kind, size: parameter.size() };
        let scales = |what| StateTensor { what, kind: Kind::Float, size: vec![(parameter.numel() / BLOCK) as i64] };
        let kind = parameter.kind();
        match self {
            Self::AdamW => vec![whole("exp_avg", kind), whole("exp_avg_sq", kind)],
            Self::AdamW8Bit => vec![
                whole("exp_avg", Kind::Uint8),
                scales("exp_avg_scale"),
                whole("exp_avg_sq", Kind::Uint8),
                scales("exp_avg_sq_scale"),
            ],
            Self::Muon { .. } => vec![whole("momentum_buffer", kind)],
        }
    }
}

/// Parameters with their rules and states, of which all decay or none.
#[derive(Default)]
pub(super) struct Group<'a> {
    parameters: Vec<(&'a Rule, &'a Tensor, &'a [Tensor])>,
}

impl<'a> Group<'a> {
    pub fn push(&mut self, rule: &'a Rule, parameter: &'a Tensor, state: &'a [Tensor]) {
        self.parameters.push((rule, parameter, state));
    }

    /// Takes a step with the stored gradients, each times `scale`.
    pub fn step(&self, config: &OptimizerConfig, weight_decay: f64, step: u64, lr: f64, scale: f64) -> Result<()> {
        if scale < 1.0 {
            let all: Vec<Tensor> = self.parameters.iter().map(|(_, parameter, _)| parameter.shallow_clone()).collect();
            torch::scale_gradients(&all, scale)?;
        }
        let adamw = AdamWStep { step, lr, betas: config.betas, weight_decay, eps: config.eps };
        let muon = muon_step(&config.muon.unwrap_or_default(), weight_decay, lr);
        let (mut together, mut exp_avgs, mut exp_avg_sqs) = (Vec::new(), Vec::new(), Vec::new());
        for &(rule, parameter, state) in &self.parameters {
            match (rule, state) {
                (Rule::AdamW, [exp_avg, exp_avg_sq]) => {
                    together.push(parameter.shallow_clone());
                    exp_avgs.push(exp_avg.shallow_clone());
                    exp_avg_sqs.push(exp_avg_sq.shallow_clone());
                }
                (Rule::AdamW8Bit, [exp_avg, scale, exp_avg_sq, scale_sq]) => {
                    torch::adamw_8bit_step(parameter, [exp_avg, scale], [exp_avg_sq, scale_sq], &adamw)?;
                }
                (Rule::Muon { rows }, [momentum_buffer]) => torch::muon_step(parameter, momentum_buffer, rows, &muon)?,
                _ => unreachable!("a state has the tensors of its rule"),
            }
        }
        Ok(torch::adamw_step(&together, &exp_avgs, &exp_avg_sqs, &adamw)?)
    }
}

fn muon_step(config: &MuonConfig, weight_decay: f64, lr: f64) -> MuonStep {
    let MuonConfig { momentum, nesterov, ns_steps, adjust_lr } = *config;
    let as_adamw = adjust_lr == AdjustLr::MatchRmsAdamw;
    MuonStep { lr, momentum, nesterov, newton_schulz_steps: ns_steps, as_adamw, weight_decay }
}
