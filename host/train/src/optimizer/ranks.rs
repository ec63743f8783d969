//! The optimiser of several ranks: each has the gradients of its share, and all take the step with their sum. Each has
//! the state and masters of some parameters alone, and gets the sums of their gradients alone.

use super::Optimizer;
use super::buckets::{BUCKET_BYTES, buckets, send};
use super::masters::{MASTER, Master};
use crate::error::{Result, TrainError};
use crate::ranks::gather_results;
use gavel_policy::Stage;
use gavel_torch::optimizer as torch;
use tch::{Device, Kind, Tensor};

impl Optimizer {
    /// Notes that a backward pass has completed the gradients of a part of the model: their sums begin.
    ///
    /// # Errors
    /// One of its parameters has no gradient, or a rank is gone.
    pub(crate) fn complete(&mut self, stage: Stage) -> Result<()> {
        self.check_gradients(stage)?;
        self.begin_sums(stage)
    }

    /// Refuses a part of the model of which a parameter has no gradient.
    pub(super) fn check_gradients(&self, stage: Stage) -> Result<()> {
        for (name, parameter) in self.names.iter().zip(&self.parameters) {
            if Stage::of(name) == stage && !parameter.f_grad()?.defined() {
                return Err(TrainError::NoGradient { name: name.clone() });
            }
        }
        Ok(())
    }

    /// Begins the sums of the gradients that are complete after this part of the model, unless they have begun. A gradient
    /// that this rank does not have counts as 0.
    pub(crate) fn begin_sums(&mut self, after: Stage) -> Result<()> {
        while let Some(bucket) = self.sums.upcoming().filter(|bucket| bucket.stage <= after) {
            let parameters: Vec<Tensor> =
                bucket.parameters.iter().map(|&at| self.parameters[at].shallow_clone()).collect();
            let gradients = torch::bucket_gradients(&parameters)?;
            let sum = self.peers.begin_reduce(&gradients, bucket.owner)?;
            if bucket.owner != self.peers.rank() {
                // The sum alone holds them now.
                torch::reset_gradients(&parameters)?;
            }
            self.sums.begun(sum);
        }
        Ok(())
    }

    /// The 2-norm of the gradient, once the sums over all ranks are there: each rank adds up those that it has.
    pub(super) fn summed_norm(&mut self) -> Result<f64> {
        if self.peers.size() == 1 {
            return self.norm(&self.parameters);
        }
        self.begin_sums(Stage::Embedding)?;
        self.sums.finish()?;
        let own = self.parameters.iter().zip(&self.owners).filter(|(_, owner)| **owner == self.peers.rank());
        let own: Vec<Tensor> = own.map(|(parameter, _)| parameter.shallow_clone()).collect();
        let (_, norms) =
            gather_results(&self.peers, if own.is_empty() { Ok(0.0) } else { self.norm(&own) }, |norm| *norm)?;
        Ok(norms.iter().map(|norm| norm * norm).sum::<f64>().sqrt())
    }

    fn norm(&self, parameters: &[Tensor]) -> Result<f64> {
        torch::gradient_norm(parameters)?
            .map_err(|missing| TrainError::NoGradient { name: self.names[missing].clone() })
    }

    /// Sends each parameter from the rank that took the step for it.
    pub(super) fn send_parameters(&mut self) -> Result<()> {
        if self.peers.size() == 1 { Ok(()) } else { self.gather_all() }
    }

    /// Sends these of the model's parameters from their owners.
    pub(super) fn send(&self, which: &[usize]) -> Result<()> {
        for rank in 0..self.peers.size() {
            let of_rank = which.iter().filter(|&&at| self.owners[at] == rank);
            let of_rank: Vec<Tensor> = of_rank.map(|&at| self.leaves[at].shallow_clone()).collect();
            for bucket in buckets(&of_rank, BUCKET_BYTES) {
                send(&self.peers, &of_rank[bucket], rank)?;
            }
        }
        Ok(())
    }

    /// The state of all parameters with its names in a file, on rank 0; the others have nothing afterwards, but have to
    /// call it.
    pub(super) fn all_states(&self) -> Result<Vec<(String, Tensor)>> {
        let _guard = tch::no_grad_guard();
        let mut all = Vec::new();
        for (at, parameter) in self.parameters.iter().enumerate() {
            for (which, like) in self.rules[at].state(parameter).iter().enumerate() {
                let own = self.states[at].as_ref().map(|state| &state[which]);
                let tensor = self.on_first(own, (&like.size, like.kind, parameter.device()), self.owners[at])?;
                if self.peers.rank() == 0 {
                    all.push((format!("{}.{}", like.what, self.names[at]), tensor));
                }
            }
        }
        Ok(all)
    }

    /// All masters, likewise.
    pub(super) fn all_masters(&self) -> Result<Vec<(String, Tensor)>> {
        let _guard = tch::no_grad_guard();
        let mut all = Vec::new();
        for Master { at, master, is_here, .. } in self.masters.iter() {
            let like = (&master.size()[..], master.kind(), master.device());
            let master = self.on_first(is_here.then_some(master), like, self.owners[*at])?;
            if self.peers.rank() == 0 {
                all.push((format!("{MASTER}.{}", self.names[*at]), master));
            }
        }
        Ok(all)
    }

    /// A tensor of the rank `owner`, of this shape and kind, on this device. On other ranks than that and 0 it has no
    /// meaning.
    fn on_first(
        &self,
        own: Option<&Tensor>,
        (size, kind, device): (&[i64], Kind, Device),
        owner: usize,
    ) -> Result<Tensor> {
        let tensor = match own {
            Some(own) => own.shallow_clone(),
            None => {
                let device = if self.is_by_layer() { Device::Cpu } else { device };
                Tensor::f_zeros(size, (kind, device))?
            }
        };
        // Rank 0 has its own, and the others do not need it.
        if owner != 0 {
            self.peers.broadcast(&tensor, owner)?;
        }
        // Its device has no memory for the state of all ranks.
        Ok(if own.is_some() { tensor } else { tensor.f_to_device(Device::Cpu)? })
    }
}
