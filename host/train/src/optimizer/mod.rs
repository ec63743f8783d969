//! AdamW and Muon, with clipping of the gradient's norm.

mod buckets;
mod by_layer;
mod config;
mod layers;
mod masters;
mod owners;
mod ranks;
mod rule;
mod state;
mod sums;

use crate::error::{Result, TrainError};
use buckets::{BUCKET_BYTES, begin_alike};
pub use config::{AdjustLr, MuonConfig, OptimizerConfig, OptimizerKind};
use gavel_torch::optimizer as torch;
use gavel_torch::peers::Peers;
use layers::Layers;
pub use layers::Parameters;
use masters::Masters;
pub(crate) use owners::owners;
use rule::{Group, Rule};
pub(crate) use rule::{has_8_bits, is_for_muon};
use sums::Sums;
use tch::{Device, Tensor};

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
pub struct Optimizer {
    config: OptimizerConfig,
    names: Vec<String>,
    /// The model's own parameters.
    leaves: Vec<Tensor>,
    /// The tensors that steps change: the model's own parameters, or their
    /// masters.
    parameters: Vec<Tensor>,
    masters: Masters,
    /// How a step changes each parameter.
    rules: Vec<Rule>,
    /// The state of each parameter, such as running means, as its rule has it, where this rank has it.
    states: Vec<Option<Vec<Tensor>>>,
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

impl Optimizer {
    /// A fresh optimiser of `parameters`, each a leaf with its name. Those with
    /// one dimension, norms and biases, do not decay.
    ///
    /// # Errors
    /// A parameter is of kind `Half`, in which small gradients are 0.
    pub fn new(parameters: Vec<(String, Tensor)>, config: OptimizerConfig) -> Result<Self> {
        let whole = |_: &str, parameter: &Tensor| Ok(vec![parameter.size()[0]]);
        Self::of_ranks(parameters, whole, config, Peers::alone(), Parameters::Whole)
    }

    /// Like [`new`](Self::new), for several ranks, which all call it. The parameters become the parameters of rank 0.
    /// This rank has the optimiser's state of its own parameters alone. `rows` has the rows of each of the matrices that
    /// lie one below the other in a parameter.
    ///
    /// # Errors
    /// As [`new`](Self::new), or a rank is gone.
    pub(crate) fn of_ranks(
        parameters: Vec<(String, Tensor)>,
        rows: impl Fn(&str, &Tensor) -> Result<Vec<i64>>,
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
        let rules = names.iter().zip(&parameters);
        let rules = rules.map(|(name, parameter)| Rule::of(config.kind, name, parameter, || rows(name, parameter)));
        let rules = rules.collect::<Result<Vec<Rule>>>()?;
        let zeros = |at: usize| -> Result<_> {
            let parameter = &parameters[at];
            let device = if layers.is_some() { Device::Cpu } else { parameter.device() };
            let state = rules[at].state(parameter).into_iter();
            Ok(state
                .map(|like| Tensor::f_zeros(like.size, (like.kind, device)))
                .collect::<std::result::Result<_, _>>()?)
        };
        let states = (0..parameters.len()).map(|at| is_own(at).then(|| zeros(at)).transpose());
        let states = states.collect::<Result<_>>()?;
        let sums = match peers.size() {
            1 => Sums::default(),
            _ => Sums::new(&names, &parameters, &owners, BUCKET_BYTES, layers.is_some()),
        };
        let steps = 0;
        let mut all = Self {
            config,
            names,
            leaves,
            parameters,
            masters,
            rules,
            states,
            owners,
            peers,
            sums,
            layers,
            decaying,
            steps,
        };
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
        let [mut decaying, mut others] = [Group::default(), Group::default()];
        for (at, state) in self.states.iter().enumerate() {
            if let Some(state) = state {
                let group = if at < self.decaying { &mut decaying } else { &mut others };
                group.push(&self.rules[at], &self.parameters[at], state);
            }
        }
        decaying.step(&self.config, self.config.weight_decay, self.steps, lr, scale)?;
        others.step(&self.config, 0.0, self.steps, lr, scale)?;
        self.masters.round()?;
        self.rest()?;
        self.send_parameters()?;
        Ok(norm)
    }
}

#[cfg(test)]
pub(crate) mod tests;
