//! The optimiser of several ranks: each has the gradients of its share, and all take the step with their sum. Each has
//! the moments of some parameters alone, and gets the sums of their gradients alone.

use super::AdamW;
use super::buckets::buckets;
use super::sums::Sums;
use crate::error::{Result, TrainError};
use crate::ranks::told;
use gavel_policy::Stage;
use gavel_torch::optimizer as torch;
use gavel_torch::peers::Peers;
use tch::Tensor;

/// Gradients are summed, and parameters sent, in pieces of about this many bytes, so that one is copied while others are
/// summed. The models of tests are small.
const BUCKET_BYTES: usize = if cfg!(test) { 1 << 10 } else { 25 << 20 };

impl AdamW {
    /// Takes every step with the other ranks. The parameters become those of rank 0, and the moments that other ranks
    /// have from now on are dropped.
    pub(crate) fn join(&mut self, peers: Peers) -> Result<()> {
        if peers.size() == 1 {
            return Ok(());
        }
        for bucket in buckets(&self.parameters, BUCKET_BYTES) {
            send(&peers, &self.parameters[bucket], 0)?;
        }
        self.masters.round()?;
        self.owners = owners(&self.parameters, peers.size());
        for (moments, owner) in self.moments.iter_mut().zip(&self.owners) {
            if *owner != peers.rank() {
                *moments = None;
            }
        }
        self.sums = Sums::new(&self.names, &self.parameters, &self.owners, BUCKET_BYTES);
        self.peers = peers;
        Ok(())
    }

    /// Notes that a backward pass has completed the gradients of a part of the model: their sums begin.
    ///
    /// # Errors
    /// One of its parameters has no gradient, or a rank is gone.
    pub(crate) fn complete(&mut self, stage: Stage) -> Result<()> {
        for (name, parameter) in self.names.iter().zip(&self.parameters) {
            if Stage::of(name) == stage && !parameter.f_grad()?.defined() {
                return Err(TrainError::NoGradient { name: name.clone() });
            }
        }
        self.begin_sums(stage)
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
        let own: Vec<Tensor> = self.of_rank(self.peers.rank());
        let (_, norms) = told(&self.peers, if own.is_empty() { Ok(0.0) } else { self.norm(&own) }, |norm| *norm)?;
        Ok(norms.iter().map(|norm| norm * norm).sum::<f64>().sqrt())
    }

    /// The parameters whose moments a rank has.
    fn of_rank(&self, rank: usize) -> Vec<Tensor> {
        let of_rank = self.parameters.iter().zip(&self.owners).filter(|(_, owner)| **owner == rank);
        of_rank.map(|(parameter, _)| parameter.shallow_clone()).collect()
    }

    fn norm(&self, parameters: &[Tensor]) -> Result<f64> {
        torch::gradient_norm(parameters)?
            .map_err(|missing| TrainError::NoGradient { name: self.names[missing].clone() })
    }

    /// Sends each parameter from the rank that took the step for it.
    pub(super) fn send_parameters(&self) -> Result<()> {
        if self.peers.size() == 1 {
            return Ok(());
        }
        for rank in 0..self.peers.size() {
            let parameters = self.of_rank(rank);
            for bucket in buckets(&parameters, BUCKET_BYTES) {
                send(&self.peers, &parameters[bucket], rank)?;
            }
        }
        Ok(())
    }

    /// The moments of all parameters, on rank 0; the others have nothing afterwards, but have to call it.
    pub(super) fn all_moments(&self) -> Result<Vec<[Tensor; 2]>> {
        let _guard = tch::no_grad_guard();
        let mut all = Vec::new();
        for ((parameter, moments), &owner) in self.parameters.iter().zip(&self.moments).zip(&self.owners) {
            let moments = match moments {
                Some([exp_avg, exp_avg_sq]) => [exp_avg.shallow_clone(), exp_avg_sq.shallow_clone()],
                None => [parameter.f_zeros_like()?, parameter.f_zeros_like()?],
            };
            // Rank 0 has its own, and the others do not need them.
            if owner != 0 {
                moments.iter().try_for_each(|moment| self.peers.broadcast(moment, owner))?;
            }
            if self.peers.rank() == 0 {
                all.push(moments);
            }
        }
        Ok(all)
    }
}

/// Overwrites tensors of one kind and device, at least one, with those of the rank `from`.
fn send(peers: &Peers, tensors: &[Tensor], from: usize) -> Result<()> {
    let _guard = tch::no_grad_guard();
    let flat = tensors.iter().map(|tensor| tensor.f_flatten(0, -1)).collect::<std::result::Result<Vec<_>, _>>()?;
    let flat = Tensor::f_cat(&flat, 0)?;
    peers.broadcast(&flat, from)?;
    if peers.rank() == from {
        return Ok(());
    }
    let mut start = 0;
    for tensor in tensors {
        let length = tensor.numel() as i64;
        tensor.shallow_clone().f_copy_(&flat.f_narrow(0, start, length)?.f_view_as(tensor)?)?;
        start += length;
    }
    Ok(())
}

/// The rank that has the moments of each parameter: the largest first, each to the rank that has the least.
fn owners(parameters: &[Tensor], ranks: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..parameters.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(parameters[at].numel()));
    let (mut owners, mut loads) = (vec![0; parameters.len()], vec![0; ranks]);
    for at in order {
        let least = (0..ranks).min_by_key(|&rank| loads[rank]).unwrap_or_default();
        loads[least] += parameters[at].numel();
        owners[at] = least;
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::{Device, Kind};

    #[test]
    fn each_rank_has_about_as_many_moments() {
        let parameters = [3, 9, 4, 4, 1].map(|length| Tensor::zeros([length], (Kind::Float, Device::Cpu)));
        assert_eq!(owners(&parameters, 1), [0; 5]);
        assert_eq!(owners(&parameters, 2), [1, 0, 1, 1, 0]);
        assert_eq!(owners(&parameters, 8), [3, 0, 1, 2, 4]);
    }
}
