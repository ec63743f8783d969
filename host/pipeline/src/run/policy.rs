//! The policy of a run: its weights, its tokenizer, its device.

use crate::error::{PipelineError, Result};
use gavel_config::{ModelKind, ModelTable, ResourcesTable};
use gavel_data::seed::{Purpose, derive};
use gavel_policy::{Device, Head, Model, ModelConfig, ModelFolder, Phase, PolicyError, Tensor, device, threads};
use gavel_text::TextModel;

/// A language model with its tokenizer and chat template.
pub(crate) struct Policy {
    pub(crate) model: Model,
    pub(crate) text: TextModel,
}

impl Policy {
    /// Loads the checkpoint, or draws the random weights, that `[model]` asks for.
    pub(crate) fn load(table: &ModelTable, kind: ModelKind, resources: &ResourcesTable, seed: u64) -> Result<Self> {
        threads::apart(|| {
            tch::set_num_threads(resources.torch_threads as i32);
            resources.cuda_fast_paths.apply();
            let device = device::select(&table.device)?;
            let (text, config) = text_and_config(table, kind)?;
            let model = weights(table, kind, config, device, seed).map_err(|error| error.during(Phase::Loading))?;
            Ok(Self { model, text })
        })
    }

    /// The policy that the run of this configuration started from, from which a KL penalty measures the distance. With
    /// adapters, it shares the policy's weights, which training does not change.
    pub(crate) fn reference(&self, table: &ModelTable, resources: &ResourcesTable, seed: u64) -> Result<Model> {
        let Some(path) = table.path.as_ref().filter(|_| self.model.is_adapted()) else {
            return Ok(Self::load(table, ModelKind::Policy, resources, seed)?.model);
        };
        let base = self.model.base()?;
        match ModelFolder::open(path)?.adapter {
            Some(adapter) => Ok(base.with_adapter(&adapter)?),
            None => Ok(base),
        }
    }

    /// Logs where the model is, its dtype, and what of it is trained.
    pub(crate) fn report(&self, table: &ModelTable) -> Result<()> {
        let place = device::name(self.model.device());
        let why = match device::why_no_gpu() {
            Some(why) if table.device == "auto" => format!(" (no GPU: {why})"),
            _ => String::new(),
        };
        tracing::info!("the model is on {place} in {}{why}", table.dtype);
        if self.model.is_adapted() {
            let count = |tensors: &[(String, Tensor)]| tensors.iter().map(|(_, tensor)| tensor.numel()).sum::<usize>();
            let trained = count(&self.model.parameters());
            // A head of its own is trained too.
            let weights = self.model.named_weights()?.into_iter().filter(|(name, _)| !name.starts_with("score."));
            let frozen = count(&weights.collect::<Vec<_>>());
            tracing::info!("LoRA: {trained} parameters are trained, {frozen} are frozen");
        }
        Ok(())
    }
}

fn weights(
    table: &ModelTable,
    model_kind: ModelKind,
    config: ModelConfig,
    device: Device,
    seed: u64,
) -> std::result::Result<Model, PolicyError> {
    let kind = table.dtype.kind();
    let Some(path) = &table.path else {
        let model = Model::random(config, derive(seed, 0, 0, Purpose::Weights), device)?;
        return if model.kind() == kind { Ok(model) } else { model.to_kind(kind) };
    };
    let model = match model_kind {
        ModelKind::Policy => Model::load(path, kind, device)?,
        ModelKind::RewardModel => {
            let seed = derive(seed, 0, 2, Purpose::Weights);
            Model::load_reward_model(path, kind, device, seed, config.pad_token_id)?
        }
    };
    match &table.lora {
        Some(lora) => model.adapt(lora, path, derive(seed, 0, 1, Purpose::Weights)),
        None => Ok(model),
    }
}

/// The tokenizer and the sizes of the model that `[model]` asks for.
pub(crate) fn text_and_config(table: &ModelTable, kind: ModelKind) -> Result<(TextModel, ModelConfig)> {
    let (mut text, mut config) = match (&table.path, &table.init) {
        (Some(path), _) => {
            let folder = ModelFolder::open(path)?;
            if let (Some(adapter), Some(_)) = (&folder.adapter, &table.lora) {
                return Err(PipelineError::Stopped(format!(
                    "model.path {} is an adapter, and [model.lora] asks for another one\nhint: leave [model.lora] out to continue training that adapter, or merge it into its base first: gavel merge",
                    adapter.display()
                )));
            }
            (TextModel::load_with(&folder.text, &folder.base)?, ModelConfig::load(path)?)
        }
        (None, Some(init)) => {
            let text = TextModel::byte_level();
            let mut config = init.clone();
            config.eos_token_id = text.tokenizer.stop_ids().to_vec();
            config.pad_token_id = Some(text.tokenizer.pad());
            (text, config)
        }
        (None, None) => return Err(PolicyError::Config("there is neither `path` nor `init`".into()).into()),
    };
    if let Some(path) = &table.chat_template {
        text.template = text.template.replaced_by(path)?;
    }
    text.template.set_variables(table.chat_template_kwargs.clone());
    match kind {
        ModelKind::Policy if config.head != Head::LanguageModel => {
            let what = "a classifier cannot be the policy: `[model]` needs a language model";
            return Err(PolicyError::Config(what.into()).into());
        }
        ModelKind::Policy => {}
        ModelKind::RewardModel => {
            config = config.for_reward_model()?;
            // A conversation may end with a token that ends texts. This must not pass for padding.
            let pad = Some(text.tokenizer.pad()).filter(|pad| !text.tokenizer.stop_ids().contains(pad));
            config.pad_token_id = config.pad_token_id.or(pad);
        }
    }
    config.check_vocabulary(text.tokenizer.vocab_size())?;
    Ok((text, config))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_data::{Message, Role};
    use serde_json::{Value, json};

    fn saved(changes: Value) -> tempfile::TempDir {
        let mut sizes = json!({"vocab_size": 259, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
                               "num_attention_heads": 2});
        sizes.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        let config: ModelConfig = serde_json::from_value(sizes).unwrap();
        let folder = tempfile::tempdir().unwrap();
        TextModel::byte_level().save(folder.path()).unwrap();
        Model::random(config, 0, Device::Cpu).unwrap().save(folder.path()).unwrap();
        folder
    }

    fn table(folder: &tempfile::TempDir, kwargs: Value) -> ModelTable {
        serde_json::from_value(json!({"path": folder.path(), "chat_template_kwargs": kwargs})).unwrap()
    }

    #[test]
    fn the_template_sees_the_variables_of_the_run() {
        let folder = saved(json!({}));
        let template = "{{ style | default('plain') }}: {{ messages[0].content }}";
        std::fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
        let render = |kwargs: Value| {
            let (text, _) = text_and_config(&table(&folder, kwargs), ModelKind::Policy).unwrap();
            text.tokenizer.decode(&text.prompt_ids(&[Message::new(Role::User, "hi")]).unwrap()).unwrap()
        };
        assert_eq!(render(json!({})), "plain: hi");
        assert_eq!(render(json!({"style": "terse"})), "terse: hi");
    }

    #[test]
    fn a_model_that_cannot_write_is_no_policy() {
        for (changes, says) in [
            (json!({"architectures": ["Qwen2ForSequenceClassification"]}), "a classifier cannot be the policy"),
            (json!({"vocab_size": 200}), "`vocab_size` 200 is smaller than the tokenizer's vocabulary of 259"),
        ] {
            let error =
                text_and_config(&table(&saved(changes), json!({})), ModelKind::Policy).err().unwrap().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
