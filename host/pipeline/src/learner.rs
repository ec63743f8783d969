//! The policy of a run: its weights, its tokenizer, its device.

use crate::config::{ModelTable, ResourcesTable};
use crate::error::Result;
use gavel_data::seed::{Purpose, derive};
use gavel_policy::{Kind, Model, ModelConfig, PolicyError, device};
use gavel_text::TextModel;

/// A model that can be talked to.
pub(crate) struct Learner {
    pub(crate) model: Model,
    pub(crate) text: TextModel,
}

impl Learner {
    /// Loads the checkpoint, or draws the random weights, that `[model]` asks for.
    pub(crate) fn new(table: &ModelTable, resources: &ResourcesTable, seed: u64) -> Result<Self> {
        let device = device::select(&table.device)?;
        tch::set_num_threads(resources.torch_threads as i32);
        let (text, config) = text_and_config(table)?;
        let model = match &table.path {
            Some(path) => Model::load(path, Kind::Float, device)?,
            None => Model::random(config, derive(seed, 0, 0, Purpose::Weights), device)?,
        };
        Ok(Self { model, text })
    }
}

/// The tokenizer and the sizes of the model that `[model]` asks for.
pub(crate) fn text_and_config(table: &ModelTable) -> Result<(TextModel, ModelConfig)> {
    let (text, config) = match (&table.path, &table.init) {
        (Some(path), _) => (TextModel::load(path)?, ModelConfig::load(path)?),
        (None, Some(init)) => {
            let text = TextModel::byte_level();
            let mut config = init.clone();
            config.eos_token_id = text.tokenizer.stop_ids().to_vec();
            config.pad_token_id = Some(text.tokenizer.pad());
            (text, config)
        }
        (None, None) => return Err(PolicyError::Config("there is neither `path` nor `init`".into()).into()),
    };
    if (config.vocab_size as usize) < text.tokenizer.vocab_size() {
        let what = format!(
            "vocab_size {} is smaller than the tokenizer's vocabulary of {}",
            config.vocab_size,
            text.tokenizer.vocab_size()
        );
        return Err(PolicyError::Config(what).into());
    }
    Ok((text, config))
}
