//! The reference: the model from which penalties measure the distance.

use crate::error::{PipelineError, Result};
use crate::run::policy::Policy;
use gavel_config::{Config, ModelTable, ReferenceTable, TrainTable};
use gavel_policy::{Head, Model, ModelFolder, Phase, PolicyError, Tensor, threads, write_tensors};
use gavel_runs::Checkpoints;
use gavel_text::TextModel;
use gavel_torch::scalar::ScalarOperations;
use std::collections::HashMap;
use std::path::Path;

/// The model from which penalties measure the distance: the first policy of the run, one that follows the policy, or
/// another model.
pub(crate) struct Reference {
    pub(crate) model: Model,
    /// How it follows the policy, if it does.
    follows: Option<Follows>,
}

/// How a reference follows the policy.
#[derive(Debug, Clone, Copy)]
struct Follows {
    every: u64,
    mixup: f64,
}

impl Reference {
    /// The reference of a run, as the checkpoint in the folder `checkpoint` has it, if the run is resumed.
    ///
    /// # Errors
    /// The reference cannot be read, or does not fit the policy.
    pub(crate) fn open<T: TrainTable>(config: &Config<T>, policy: &Policy, checkpoint: Option<&Path>) -> Result<Self> {
        let table = config.train.reference();
        if let Some(path) = table.and_then(|table| table.path.as_deref()) {
            let other = other(path, policy, &config.model);
            let model = other.map_err(|what| PipelineError::Stopped(format!("train.reference.path: {what}")))?;
            return Ok(Self { model, follows: None });
        }
        let follows = |table: &ReferenceTable| Some(Follows { every: table.every?, mixup: table.mixup });
        let follows = table.and_then(follows);
        if follows.is_some() && policy.model.is_adapted() {
            return Err(PipelineError::Stopped(
                "train.reference.every is for a policy whose weights are all trained: with adapters, the reference is the base\nhint: leave [train.reference] out".into(),
            ));
        }
        let first = policy.reference(&config.model, &config.resources, config.seed)?;
        let reference = Self { model: first, follows };
        if let Some(checkpoint) = checkpoint {
            reference.load(&Checkpoints::reference(checkpoint))?;
        }
        Ok(reference)
    }

    /// Follows the policy after step `step`, if it is time.
    pub(crate) fn follow(&self, policy: &Model, step: u64) -> std::result::Result<(), PolicyError> {
        let Some(Follows { mixup, .. }) = self.follows.filter(|follows| step.is_multiple_of(follows.every)) else {
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
    fn load(&self, path: &Path) -> std::result::Result<(), PolicyError> {
        if self.follows.is_none() {
            return Ok(());
        }
        read_parameters(&self.model, path)
    }
}

/// The model in the folder `path`, on the device of the policy, which has the same tokens.
fn other(path: &Path, policy: &Policy, table: &ModelTable) -> std::result::Result<Model, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let folder = ModelFolder::open(path).map_err(|error| text(&error))?;
    let tokenizer = TextModel::load_with(&folder.text, &folder.base).map_err(|error| text(&error))?.tokenizer;
    if let Some(id) = policy.text.tokenizer.first_difference(&tokenizer) {
        let [own, other] = [&policy.text.tokenizer, &tokenizer].map(|tokenizer| tokenizer.token_to_text(id).text);
        return Err(format!(
            "token {id} is {other:?} in {}, and {own:?} in the policy's tokenizer\nhint: log-probabilities can only be compared with those of a model that has the policy's tokens",
            folder.text.display()
        ));
    }
    let (kind, device) = (table.dtype.kind(), policy.model.device());
    let load = || Model::load(path, kind, device).map_err(|error| error.during(Phase::Loading));
    let model = threads::apart(load).map_err(|error| text(&error))?;
    match model.config().head {
        Head::LanguageModel => {}
        _ => return Err(format!("{} is not a language model", folder.base.display())),
    }
    model.config().check_vocabulary(policy.text.tokenizer.vocab_size()).map_err(|error| text(&error))?;
    Ok(model)
}

/// Overwrites the parameters of a model with those in the safetensors file `path`.
pub(crate) fn read_parameters(model: &Model, path: &Path) -> std::result::Result<(), PolicyError> {
    let mut found: HashMap<String, Tensor> = Tensor::read_safetensors(path)?.into_iter().collect();
    let names = model.parameters().into_iter().map(|(name, _)| name);
    let weights: Vec<(String, Tensor)> =
        names.filter_map(|name| found.remove(&name).map(|weight| (name, weight))).collect();
    model.set_parameters(&weights)
}
