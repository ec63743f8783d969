//! AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization",
//! 2019) with clipping of the gradient's norm.

mod buckets;
mod by_layer;
mod layers;
mod masters;
mod owners;
mod ranks;
mod state;
mod sums;

use crate::config::{ConfigError, check};
use crate::error::{Result, TrainError};
use buckets::{BUCKET_BYTES, begin_alike};
use gavel_torch::optimizer as torch;
use gavel_torch::peers::Peers;
use layers::Layers;
pub use layers::Parameters;
use masters::Masters;
pub(crate) use owners::owners;
use serde::{Deserialize, Serialize};
use sums::Sums;
use tch::{Device, Tensor};

/// The settings of the optimiser, besides the learning rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptimizerConfig {
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
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self { betas: [0.9, 0.999], eps: 1e-8, weight_decay: 0.01, max_grad_norm: 1.0 }
    }
}

impl OptimizerConfig {
    /// Refuses values that are not valid, naming the key.
    pub fn validate(&self) -> std::result::Result<(), ConfigError> {
        for beta in self.betas {
            check("betas", beta, "two numbers of at least 0 and below 1", |beta| (0.0..1.0).contains(&beta))?;
        }
        check("eps", self.eps, "a number above 0", |eps| eps > 0.0)?;
        check("weight_decay", self.weight_decay, "a number of at least 0", |decay| decay >= 0.0)?;
        match self.max_grad_norm {
            norm if norm > 0.0 => Ok(()),
            norm => Err(ConfigError::new("max_grad_norm", "a number above 0, or inf", norm)),
        }
    }
}

/// The optimiser of a model's parameters, which it shares with the model.
///
/// Parameters of kind `BFloat16` have a master of kind `Float`. Gradients are
/// summed in the master and steps change it; after a step, the parameter is the
/// rounded master. An optimiser takes over the gradients of such parameters:
/// while it lives, a backward pass leaves no gradient with them.
///
/// With several ranks each owns some parameters: it alone has their running means, masters and summed gradients, takes the
/// step for them, and sends them to the others (ZeRO-2: Rajbhandari et al., "ZeRO: memory optimizations toward training
/// trillion parameter models", arXiv:1910.02054).
pub struct AdamW {
    config: OptimizerConfig,
    names: Vec<String>,
    /// The model's own parameters.
    leaves: Vec<Tensor>,
    /// The tensors that steps change: the model's own parameters, or their
    /// masters.
    parameters: Vec<Tensor>,
    masters: Masters,
    /// The running means of each parameter's gradient and squared gradient, where this rank has them.
    moments: Vec<Option<[Tensor; 2]>>,
    /// The rank that owns each parameter.
    owners: Vec<usize>,
    peers: Peers,
    /// The sums of gradients over several ranks.
    sums: Sums,
    /// The layers, if ranks hold them in parts.
    layers: Option<Layers>,
    /// The first `decaying` parameters decay.
    decaying: usize,
    steps: u64,
}

impl AdamW {
    /// A fresh optimiser of `parameters`, each a leaf with its name. Those with
    /// one dimension, norms and biases, do not decay.
    ///
    /// # Errors
    /// A parameter is of kind `Half`, in which small gradients are 0.
    pub fn new(parameters: Vec<(String, Tensor)>, config: OptimizerConfig) -> Result<Self> {
        Self::of_ranks(parameters, config, Peers::alone(), Parameters::Whole)
    }

    /// Like [`new`](Self::new), for several ranks, which all call it. The parameters become the parameters of rank 0.
    /// This rank has the optimiser's state of its own parameters alone.
    ///
    /// # Errors
    /// As [`new`](Self::new), or a rank is gone.
    pub(crate) fn of_ranks(
        parameters: Vec<(String, Tensor)>,
        config: OptimizerConfig,
        peers: Peers,
        held: Parameters,
    ) -> Result<Self> {
        let (matrices, vectors): (Vec<_>, Vec<_>) =
            parameters.into_iter().partition(|(_, parameter)| parameter.dim() > 1);
        let decaying = matrices.len();
        let (names, leaves): (Vec<_>, Vec<Tensor>) = matrices.into_iter().chain(vectors).unzip();
        let sizes: Vec<usize> = leaves.iter().map(Tensor::numel).collect();
        let owners = owners(&sizes, peers.size());
        let layers = (held == Parameters::ByLayer && peers.size() > 1).then(|| Layers::new(&names));
        begin_alike(&leaves, &peers)?;
        let mut parameters: Vec<Tensor> = leaves.iter().map(Tensor::shallow_clone).collect();
        let is_own = |at: usize| owners[at] == peers.rank();
        let masters = Masters::replace(&names, &mut parameters, is_own)?;
        let zeros = |at: usize| -> Result<_> {
            let parameter = &parameters[at];
            let device = if layers.is_some() { Device::Cpu } else { parameter.device() };
            let zeros = || Tensor::f_zeros(parameter.size(), (parameter.kind(), device));
            Ok(if is_own(at) { Some([zeros()?, zeros()?]) } else { None })
        };
        let moments = (0..parameters.len()).map(zeros).collect::<Result<_>>()?;
        let sums = match peers.size() {
            1 => Sums::default(),
            _ => Sums::new(&names, &parameters, &owners, BUCKET_BYTES, layers.is_some()),
        };
        let steps = 0;
        let mut all =
            Self { config, names, leaves, parameters, masters, moments, owners, peers, sums, layers, decaying, steps };
        all.rest()?;
        Ok(all)
    }

    /// How many steps were taken.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Forgets the gradients.
    pub fn zero_grad(&mut self) -> Result<()> {
        self.sums.finish()?;
        // A failed backward pass may have left some with parameters that have a master.
        torch::reset_gradients(&self.leaves)?;
        Ok(torch::reset_gradients(&self.parameters)?)
    }

    /// Takes one step with the stored gradients, of all ranks together, and returns their norm before clipping.
    ///
    /// # Errors
    /// A gradient is missing or not finite; nothing is changed then.
    pub fn step(&mut self, lr: f64) -> Result<f64> {
        let norm = self.summed_norm()?;
        if !norm.is_finite() {
            return Err(TrainError::NonFinite { step: self.steps, quantity: "gradient norm", value: norm });
        }
        // The same small number as in torch.nn.utils.clip_grad_norm_.
        let scale = self.config.max_grad_norm / (norm + 1e-6);
        self.steps += 1;
        let (decaying, config) = (self.decaying, &self.config);
        for (range, weight_decay) in [(0..decaying, config.weight_decay), (decaying..self.parameters.len(), 0.0)] {
            let (mut parameters, mut exp_avgs, mut exp_avg_sqs) = (Vec::new(), Vec::new(), Vec::new());
            for (parameter, moments) in self.parameters[range.clone()].iter().zip(&self.moments[range]) {
                if let Some([exp_avg, exp_avg_sq]) = moments {
                    parameters.push(parameter.shallow_clone());
                    exp_avgs.push(exp_avg.shallow_clone());
                    exp_avg_sqs.push(exp_avg_sq.shallow_clone());
                }
            }
            if scale < 1.0 {
                torch::scale_gradients(&parameters, scale)?;
            }
            let step = torch::AdamWStep { step: self.steps, lr, betas: config.betas, weight_decay, eps: config.eps };
            torch::adamw_step(&parameters, &exp_avgs, &exp_avg_sqs, &step)?;
        }
        self.masters.round()?;
        self.rest()?;
        self.send_parameters()?;
        Ok(norm)
    }
}

#[cfg(test)]
pub(crate) mod tests;
