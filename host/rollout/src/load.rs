//! A model from its folder.

use crate::error::RolloutError;
use gavel_policy::{Dtype, Model, ModelFolder, Phase, device, stored_kind, threads};
use gavel_text::TextModel;
use std::path::Path;

/// Loads a model, with its tokenizer and chat template, onto the device of this name. The folder `dir` has a
/// checkpoint, or an adapter, whose base is loaded too. Without a `dtype`, the weights are float32 on the CPU, and of
/// the checkpoint's dtype on a GPU.
///
/// # Errors
/// A file is missing or wrong, or the device cannot be used.
pub fn load(dir: &Path, device: &str, dtype: Option<Dtype>) -> Result<(Model, TextModel), RolloutError> {
    let device = device::select(device)?;
    let folder = ModelFolder::open(dir)?;
    let text = TextModel::load_with(&folder.text, &folder.base)?;
    let kind = Dtype::or_of_device(dtype, device, || stored_kind(dir))?;
    let model = threads::apart(|| Model::load(dir, kind, device)).map_err(|error| error.during(Phase::Loading))?;
    model.config().check_vocabulary(text.tokenizer.vocab_size())?;
    Ok((model, text))
}
