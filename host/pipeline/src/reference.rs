//! The reference: the policy from which penalties measure the distance.

use crate::config::ReferenceTable;
use crate::error::{PipelineError, Result};
use gavel_policy::{Model, PolicyError, Tensor, write_tensors};
use gavel_torch::scalar::ScalarOperations;
use std::collections::HashMap;
use std::path::Path;

/// The policy from which penalties measure the distance: the first policy of the run, or one that follows the policy.
pub(crate) struct Reference {
    pub(crate) model: Model,
    /// How it follows the policy, if it does.
    follows: Option<ReferenceTable>,
}

impl Reference {
    /// A reference that is `model` at first.
    ///
    /// # Errors
    /// The reference should follow the policy, but shares its weights.
    pub(crate) fn new(model: Model, follows: Option<ReferenceTable>, policy: &Model) -> Result<Self> {
        if follows.is_some() && policy.is_adapted() {
            return Err(PipelineError::Stopped(
                "train.reference is for a policy whose weights are all trained: with adapters, the reference is the base\nhint: leave [train.reference] out".into(),
            ));
        }
        Ok(Self { model, follows })
    }

    /// Follows the policy after step `step`, if it is time.
    pub(crate) fn follow(&self, policy: &Model, step: u64) -> std::result::Result<(), PolicyError> {
        let Some(ReferenceTable { mixup, .. }) = self.follows.filter(|follows| step.is_multiple_of(follows.every))
        else {
            return Ok(());
        };
        let _guard = tch::no_grad_guard();
        for ((_, mut own), (_, new)) in self.model.parameters().into_iter().zip(policy.parameters()) {
            let new = new.f_detach()?.try_mul(mixup)?;
            own.try_mul_(1.0 - mixup)?;
            let _ = own.f_add_(&new)?;
        }
        Ok(())
    }

    /// Writes its weights to the file `path`, if they change over the run.
    pub(crate) fn save(&self, path: &Path) -> std::result::Result<(), PolicyError> {
        match self.follows {
            Some(_) => write_tensors(path, self.model.parameters(), None),
            None => Ok(()),
        }
    }

    /// Restores what [`save`](Self::save) wrote, if it wrote anything.
    pub(crate) fn load(&self, path: &Path) -> std::result::Result<(), PolicyError> {
        if self.follows.is_none() {
            return Ok(());
        }
        read_parameters(&self.model, path)
    }
}

/// Overwrites the parameters of a model with those in the safetensors file `path`.
pub(crate) fn read_parameters(model: &Model, path: &Path) -> std::result::Result<(), PolicyError> {
    let mut found: HashMap<String, Tensor> = Tensor::read_safetensors(path)?.into_iter().collect();
    let names = model.parameters().into_iter().map(|(name, _)| name);
    let weights: Vec<(String, Tensor)> =
        names.filter_map(|name| found.remove(&name).map(|weight| (name, weight))).collect();
    model.set_parameters(&weights)
}
