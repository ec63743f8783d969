//! Layers whose weights the ranks hold in parts. A layer is gathered before it computes and freed after that, and its
//! gradients are summed for their owners after each micro-batch (ZeRO-3: Rajbhandari et al., arXiv:1910.02054, 5.3).

use crate::error::Result;
use gavel_policy::Stage;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use tch::{Device, Kind, Tensor};

/// Which weights a rank has during an update. Outside of updates it has all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Parameters {
    /// All of them.
    #[default]
    Whole,
    /// Its part of the layers, and the whole of the layer that computes.
    ByLayer,
}

/// Something that all ranks do together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exchange {
    /// Each rank gets the weights of a layer.
    Gather(usize),
    /// The owners get the sums of the gradients of a part of the model.
    Sum(Stage),
}

/// The layers of a model, and what is left of an update.
pub(super) struct Layers {
    /// The parameters of each layer.
    pub parameters: Vec<Vec<usize>>,
    /// Whether only this rank's part of a layer is here.
    pub freed: Vec<bool>,
    /// What all ranks do in a micro-batch, in this order. A rank without rows, or one that failed, does it too.
    exchanges: Vec<Exchange>,
    /// How many exchanges were made in this update, and how many it has.
    pub made: usize,
    total: usize,
    /// Whether an exchange failed on this rank, so that it cannot make the next ones with the others.
    pub is_broken: bool,
}

impl Layers {
    /// The layers of parameters with these names.
    pub fn new(names: &[String]) -> Self {
        let mut parameters: Vec<Vec<usize>> = Vec::new();
        for (at, name) in names.iter().enumerate() {
            if let Stage::Layer(Reverse(layer)) = Stage::of(name) {
                parameters.resize_with(parameters.len().max(layer + 1), Vec::new);
                parameters[layer].push(at);
            }
        }
        let layers = parameters.len();
        let forward = (0..layers).map(Exchange::Gather);
        let of_layers = (0..layers).rev().flat_map(|layer| {
            let stage = Stage::Layer(Reverse(layer));
            [Exchange::Gather(layer), Exchange::Sum(stage)]
        });
        let backward = [Exchange::Sum(Stage::Head)].into_iter().chain(of_layers);
        let exchanges = forward.chain(backward).chain([Exchange::Sum(Stage::Embedding)]).collect();
        Self { parameters, freed: vec![false; layers], exchanges, made: 0, total: 0, is_broken: false }
    }

    /// Begins an update with this number of micro-batches on the rank that has the most.
    pub fn begin(&mut self, micro_batches: usize) {
        (self.made, self.total, self.is_broken) = (0, micro_batches * self.exchanges.len(), false);
    }

    /// Whether the next exchange is the first of a micro-batch.
    pub fn is_at_start(&self) -> bool {
        self.made.is_multiple_of(self.exchanges.len())
    }

    /// What all ranks do next.
    pub fn upcoming(&self) -> Option<Exchange> {
        (self.made < self.total).then(|| self.exchanges[self.made % self.exchanges.len()])
    }
}

/// A tensor of this shape that takes no memory: all its numbers are one.
pub(super) fn without_numbers(size: &[i64], kind: Kind, device: Device) -> Result<Tensor> {
    Ok(Tensor::f_zeros([1], (kind, device))?.f_expand(size, false)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_is_gathered_before_each_use_and_summed_after_it() {
        use Exchange::{Gather, Sum};
        let names = ["model.layers.1.a", "model.embed_tokens.weight", "model.layers.0.a", "model.layers.1.b"];
        let mut layers = Layers::new(&names.map(str::to_owned));
        assert_eq!(layers.parameters, [vec![2], vec![0, 3]]);
        let [first, second] = [0, 1].map(|layer| Sum(Stage::Layer(Reverse(layer))));
        let (head, embedding) = (Sum(Stage::Head), Sum(Stage::Embedding));
        let of_one = [Gather(0), Gather(1), head, Gather(1), second, Gather(0), first, embedding];
        assert_eq!(layers.exchanges, of_one);
        assert_eq!(layers.upcoming(), None);
        layers.begin(2);
        layers.made = 8;
        assert_eq!(layers.upcoming(), Some(Gather(0)));
    }
}
