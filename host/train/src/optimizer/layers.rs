//! Layers whose weights the ranks hold in parts. A layer is gathered before it computes and freed after that, and its
//! gradients are summed for their owners after each micro-batch (ZeRO-3: Rajbhandari et al., arXiv:1910.02054, 5.3).

use super::AdamW;
use crate::error::{Result, TrainError};
use crate::ranks::told;
use gavel_policy::{Moment, Stage};
use gavel_torch::optimizer as torch;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use tch::{Device, Kind, Tensor};

/// Which weights a rank has during an update. Outside of updates it has all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
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
enum Exchange {
    /// Each rank gets the weights of a layer.
    Gather(usize),
    /// The owners get the sums of the gradients of a part of the model.
    Sum(Stage),
}

/// The layers of a model, and what is left of an update.
pub(super) struct Layers {
    /// The parameters of each layer.
    parameters: Vec<Vec<usize>>,
    /// Whether only this rank's part of a layer is here.
    freed: Vec<bool>,
    /// What all ranks do in a micro-batch, in this order. A rank without rows, or one that failed, does it too.
    exchanges: Vec<Exchange>,
    /// How many exchanges were made in this update, and how many it has.
    made: usize,
    total: usize,
    /// Whether an exchange failed on this rank, so that it cannot make the next ones with the others.
    is_broken: bool,
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

    fn upcoming(&self) -> Option<Exchange> {
        (self.made < self.total).then(|| self.exchanges[self.made % self.exchanges.len()])
    }
}

impl AdamW {
    /// Whether the ranks hold layers in parts.
    pub(crate) fn is_by_layer(&self) -> bool {
        self.layers.is_some()
    }

    /// Begins an update in which this rank has so many micro-batches: from now on it has only its part of each layer.
    pub(crate) fn begin_update(&mut self, micro_batches: usize) -> Result<()> {
        if self.layers.is_none() {
            return Ok(());
        }
        let (_, counts) = told(&self.peers, Ok(()), |()| micro_batches)?;
        if let Some(layers) = &mut self.layers {
            let most = counts.into_iter().max().unwrap_or_default();
            (layers.made, layers.total, layers.is_broken) = (0, most * layers.exchanges.len(), false);
        }
        self.free_layers()?;
        self.move_state(true)
    }

    /// Does what a moment of a forward pass needs.
    pub(crate) fn forward(&mut self, moment: Moment) -> Result<()> {
        match moment {
            Moment::Before(Stage::Layer(_)) => self.exchange(),
            Moment::After(Stage::Layer(_)) => self.free_layers(),
            _ => Ok(()),
        }
    }

    /// Does what a moment of a backward pass needs or allows. Whole parameters are summed in that of the last
    /// micro-batch.
    pub(crate) fn backward(&mut self, moment: Moment, is_last: bool) -> Result<()> {
        match moment {
            Moment::Before(Stage::Layer(_)) => self.exchange(),
            Moment::After(stage) if self.is_by_layer() => {
                self.check_gradients(stage)?;
                self.exchange()
            }
            Moment::After(stage) if is_last => self.complete(stage),
            _ => Ok(()),
        }
    }

    /// Begins or makes all exchanges that are left, also if this rank has no rows or has failed: the others wait.
    pub(crate) fn finish_update(&mut self) -> Result<()> {
        if self.layers.is_none() {
            return self.begin_sums(Stage::Embedding);
        }
        while self.layers.as_ref().is_some_and(|layers| layers.upcoming().is_some()) {
            self.exchange()?;
        }
        self.free_layers()
    }

    /// Gathers the layers of which only a part is here, after an update that has failed on all ranks.
    pub(crate) fn restore(&mut self) -> Result<()> {
        self.rest()?;
        let freed = self.layers.iter().flat_map(|layers| layers.freed.iter().enumerate());
        let freed: Vec<usize> = freed.filter(|(_, is_freed)| **is_freed).map(|(layer, _)| layer).collect();
        freed.into_iter().try_for_each(|layer| self.gather_layer(layer))
    }

    /// Ends an update: gradients are dropped, and the state waits in host memory, because whole weights come back.
    pub(super) fn rest(&mut self) -> Result<()> {
        if self.layers.is_none() {
            return Ok(());
        }
        self.sums.finish()?;
        torch::reset_gradients(&self.parameters)?;
        self.move_state(false)
    }

    /// Moves the moments and masters that this rank has to the device of the model, or to host memory.
    fn move_state(&mut self, to_model: bool) -> Result<()> {
        let _guard = tch::no_grad_guard();
        for ((leaf, parameter), moments) in self.leaves.iter().zip(&self.parameters).zip(&mut self.moments) {
            let device = if to_model { leaf.device() } else { Device::Cpu };
            for moment in moments.iter_mut().flatten() {
                *moment = moment.f_to_device(device)?;
            }
            let is_master = leaf.kind() != parameter.kind();
            if moments.is_some() && is_master && parameter.device() != device {
                parameter.shallow_clone().f_set_data(&parameter.f_to_device(device)?)?;
            }
        }
        Ok(())
    }

    /// Makes the next exchange.
    fn exchange(&mut self) -> Result<()> {
        let Some(layers) = &mut self.layers else { return Ok(()) };
        let Some(exchange) = layers.upcoming().filter(|_| !layers.is_broken) else {
            return Err(TrainError::Torch("ranks cannot exchange layers after a failure".into()));
        };
        (layers.made, layers.is_broken) = (layers.made + 1, true);
        match exchange {
            Exchange::Gather(layer) => {
                self.free_layers()?;
                self.gather_layer(layer)?;
            }
            Exchange::Sum(stage) => {
                self.begin_sums(stage)?;
                // Now: gradients of another layer would come beside those of this one.
                self.sums.wait()?;
                self.free_layers()?;
                if stage == Stage::Embedding {
                    self.sums.finish()?;
                }
            }
        }
        if let Some(layers) = &mut self.layers {
            layers.is_broken = false;
        }
        Ok(())
    }

    /// Gives all ranks the weights of a layer.
    pub(super) fn gather_layer(&mut self, layer: usize) -> Result<()> {
        let Some(layers) = &mut self.layers else { return Ok(()) };
        let parameters = layers.parameters[layer].clone();
        if std::mem::replace(&mut layers.freed[layer], false) {
            for at in self.of_others(&parameters) {
                let leaf = &self.leaves[at];
                leaf.shallow_clone().f_set_data(&Tensor::f_empty(leaf.size(), (leaf.kind(), leaf.device()))?)?;
            }
        }
        self.send(&parameters)
    }

    /// Gives all ranks the weights of all layers, and then those of the other parts of the model.
    pub(super) fn gather_all(&mut self) -> Result<()> {
        let in_layers = self.layers.as_ref().map(|layers| layers.parameters.clone()).unwrap_or_default();
        (0..in_layers.len()).try_for_each(|layer| self.gather_layer(layer))?;
        let is_outside = |at: &usize| !in_layers.iter().flatten().any(|other| other == at);
        self.send(&(0..self.leaves.len()).filter(is_outside).collect::<Vec<_>>())
    }

    /// Frees the weights of layers that other ranks have.
    fn free_layers(&mut self) -> Result<()> {
        let Some(layers) = &mut self.layers else { return Ok(()) };
        let whole = layers.parameters.iter().zip(&mut layers.freed).filter(|(_, freed)| !**freed);
        let parameters = whole.flat_map(|(parameters, freed)| {
            *freed = true;
            parameters.clone()
        });
        let parameters: Vec<usize> = parameters.collect();
        self.of_others(&parameters).try_for_each(|at| free(&self.leaves[at]))
    }

    /// Those of the parameters that other ranks own.
    fn of_others<'a>(&'a self, parameters: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
        parameters.iter().copied().filter(|&at| self.owners[at] != self.peers.rank())
    }
}

/// Frees the memory of a tensor, which keeps its shape.
fn free(tensor: &Tensor) -> Result<()> {
    let freed = without_numbers(&tensor.size(), tensor.kind(), tensor.device())?;
    Ok(tensor.shallow_clone().f_set_data(&freed)?)
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
        (layers.made, layers.total) = (8, 16);
        assert_eq!(layers.upcoming(), Some(Gather(0)));
    }
}
