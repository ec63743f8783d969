//! The references: the models from which penalties and distillation measure the distance.

use crate::error::{PipelineError, Result};
use crate::run::policy::Policy;
use gavel_config::{Config, ModelTable, ReferenceTable, TrainTable};
use gavel_policy::{Head, Model, ModelFolder, Phase, PolicyError, Tensor, threads, write_tensors};
use gavel_runs::Checkpoints;
use gavel_text::TextModel;
use gavel_torch::scalar::ScalarOperations;
use gavel_train::{Experience, TrainError};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// The references of a run.
pub(crate) struct References {
    /// The one for all rows; nothing if each data source has another one.
    for_all: Option<Reference>,
    /// Those of data sources, in the order of [`ReferenceTable::of_sources`].
    of_sources: Vec<Model>,
}

impl References {
    /// The references of a run, as the checkpoint in the folder `checkpoint` has them, if the run is resumed.
    ///
    /// # Errors
    /// A reference cannot be read, or does not fit the policy.
    pub(crate) fn open<T: TrainTable>(config: &Config<T>, policy: &Policy, checkpoint: Option<&Path>) -> Result<Self> {
        let table = config.train.reference();
        let of_sources = table.map(ReferenceTable::of_sources).unwrap_or_default();
        let for_all = match of_sources.is_empty() || table.is_some_and(ReferenceTable::is_for_all) {
            true => Some(Reference::open(config, policy, checkpoint)?),
            false => None,
        };
        let open = |path: &Path| {
            let model = other(path, policy, &config.model);
            model.map_err(|what| PipelineError::Stopped(format!("train.reference.by_source: {what}")))
        };
        Ok(Self { for_all, of_sources: of_sources.into_iter().map(open).collect::<Result<_>>()? })
    }

    /// The one for all rows.
    pub(crate) fn for_all(&self) -> Option<&Model> {
        self.for_all.as_ref().map(|reference| &reference.model)
    }

    /// How many tokens of the vocabulary the policy and all references have logits of.
    pub(crate) fn vocabulary(&self, policy: &Model) -> i64 {
        let models = self.of_sources.iter().chain(self.for_all()).chain([policy]);
        models.map(|model| model.config().vocab_size).min().unwrap_or_default()
    }

    /// What `ask` finds of each row with the reference that the row is compared with.
    pub(crate) fn ask<T>(
        &self,
        rows: &[Experience],
        ask: impl Fn(&Model, &[Experience]) -> std::result::Result<Vec<T>, TrainError>,
    ) -> std::result::Result<Vec<T>, TrainError> {
        let mut found: Vec<(usize, T)> = Vec::new();
        for number in rows.iter().map(|row| row.reference).collect::<BTreeSet<_>>() {
            let of_source = |place| self.of_sources.get(place);
            let model = number.checked_sub(1).map_or(self.for_all(), of_source).ok_or(TrainError::NoReference)?;
            let own: Vec<usize> = (0..rows.len()).filter(|row| rows[*row].reference == number).collect();
            let asked: Vec<Experience> = own.iter().map(|row| rows[*row].clone()).collect();
            found.extend(own.into_iter().zip(ask(model, &asked)?));
        }
        found.sort_by_key(|(row, _)| *row);
        Ok(found.into_iter().map(|(_, found)| found).collect())
    }

    /// Lets the one for all follow the policy after step `step`, if it is time.
    pub(crate) fn follow(&self, policy: &Model, step: u64) -> std::result::Result<(), PolicyError> {
        self.for_all.as_ref().map_or(Ok(()), |reference| reference.follow(policy, step))
    }

    /// Writes the weights that change over the run to the file `path`, if any do.
    pub(crate) fn save(&self, path: &Path) -> std::result::Result<(), PolicyError> {
        self.for_all.as_ref().map_or(Ok(()), |reference| reference.save(path))
    }
}

/// A model for all rows: the first policy of the run, one that follows the policy, or another model.
struct Reference {
    model: Model,
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
    fn open<T: TrainTable>(config: &Config<T>, policy: &Policy, checkpoint: Option<&Path>) -> Result<Self> {
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
    fn follow(&self, policy: &Model, step: u64) -> std::result::Result<(), PolicyError> {
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
    fn save(&self, path: &Path) -> std::result::Result<(), PolicyError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_policy::Device;
    use gavel_train::log_probs;

    #[test]
    fn each_row_is_asked_of_the_reference_of_its_data_source() {
        let json = r#"{"model_type":"qwen2","vocab_size":50,"hidden_size":16,"intermediate_size":24,"num_hidden_layers":1,"num_attention_heads":2,"initializer_range":0.5}"#;
        let model = |seed| Model::random(serde_json::from_str(json).unwrap(), seed, Device::Cpu).unwrap();
        let for_all = Some(Reference { model: model(0), follows: None });
        let references = References { for_all, of_sources: vec![model(1), model(2)] };
        let row = |(place, reference): (usize, usize)| Experience {
            prompt: vec![1, place as u32],
            response: vec![3, 4, 5],
            loss_mask: vec![true; 3],
            reference,
            ..Experience::default()
        };
        let rows: Vec<Experience> = [2, 0, 1, 1, 2].into_iter().enumerate().map(row).collect();
        let asked = references.ask(&rows, |model, rows| log_probs(model, rows, 1.0, 100)).unwrap();
        for (row, found) in rows.iter().zip(&asked) {
            for number in 0..3 {
                let own = log_probs(&model(number), std::slice::from_ref(row), 1.0, 100).unwrap().remove(0);
                let error = own.iter().zip(found).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert_eq!(error < 1e-5, number as usize == row.reference, "{}, {number}: {error}", row.reference);
            }
        }
        assert_eq!(references.vocabulary(&model(3)), 50);
        // Where each data source has another one, no row is compared with the run's own.
        let of_sources = References { for_all: None, ..references };
        assert!(of_sources.ask(&rows, |model, rows| log_probs(model, rows, 1.0, 100)).is_err());
    }
}
