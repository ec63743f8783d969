//! Updates in which ranks hold layers in parts.

use super::Optimizer;
use super::layers::{Exchange, without_numbers};
use crate::error::{Result, TrainError};
use crate::ranks::gather_results;
use gavel_policy::{Moment, Stage};
use gavel_torch::optimizer as torch;
use tch::{Device, Tensor};

impl Optimizer {
    /// Whether the ranks hold layers in parts.
    pub(crate) fn is_by_layer(&self) -> bool {
        self.layers.is_some()
    }

    /// Begins an update in which this rank has this number of micro-batches. From now on it has only its part of each
    /// layer.
    pub(crate) fn begin_update(&mut self, micro_batches: usize) -> Result<()> {
        if self.layers.is_none() {
            return Ok(());
        }
        let (_, counts) = gather_results(&self.peers, Ok(()), |()| micro_batches)?;
        if let Some(layers) = &mut self.layers {
            layers.begin(counts.into_iter().max().unwrap_or_default());
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

    /// Does what a moment of a backward pass needs or allows. Whole parameters are summed in the backward pass of the
    /// last micro-batch.
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

    /// Moves the state and masters that this rank has to the device of the model, or to host memory.
    fn move_state(&mut self, to_model: bool) -> Result<()> {
        let _guard = tch::no_grad_guard();
        for ((leaf, parameter), state) in self.leaves.iter().zip(&self.parameters).zip(&mut self.states) {
            let device = if to_model { leaf.device() } else { Device::Cpu };
            for tensor in state.iter_mut().flatten() {
                *tensor = tensor.f_to_device(device)?;
            }
            let is_master = leaf.kind() != parameter.kind();
            if state.is_some() && is_master && parameter.device() != device {
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
        let begins = layers.is_at_start();
        (layers.made, layers.is_broken) = (layers.made + 1, true);
        if begins {
            // The sums of the micro-batch before. The sums of the last micro-batch stay noted until the step.
            self.sums.finish()?;
        }
        match exchange {
            Exchange::Gather(layer) => {
                self.free_layers()?;
                self.gather_layer(layer)?;
            }
            Exchange::Sum(stage) => {
                self.begin_sums(stage)?;
                // Now: gradients of another layer would come beside the gradients of this layer.
                self.sums.wait()?;
                self.free_layers()?;
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

    /// Gives all ranks the weights of all layers, and then the weights of the other parts of the model.
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

    /// The parameters among these that other ranks own.
    fn of_others<'a>(&'a self, parameters: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
        parameters.iter().copied().filter(|&at| self.owners[at] != self.peers.rank())
    }
}

/// Frees the memory of a tensor, which keeps its shape.
fn free(tensor: &Tensor) -> Result<()> {
    let freed = without_numbers(&tensor.size(), tensor.kind(), tensor.device())?;
    Ok(tensor.shallow_clone().f_set_data(&freed)?)
}
