//! A model from its folder.

use crate::error::RolloutError;
use gavel_policy::{Dtype, Model, ModelFolder, Phase, device, stored_kind, threads};
use gavel_text::TextModel;
use std::path::Path;

/// Loads the checkpoint in the folder `dir`, or the adapter in it with its
/// base, its tokenizer and chat template, onto the device of this name. Without
/// a `dtype` its weights become 32-bit numbers on the CPU and what the checkpoint
/// has on a GPU.
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
