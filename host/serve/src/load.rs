//! A model from its folder.

use crate::error::ServeError;
use gavel_policy::{Device, Dtype, Kind, Model, Phase, device, stored_kind};
use gavel_text::TextModel;
use std::path::Path;

/// Loads the checkpoint in the folder `dir`, its tokenizer and chat template,
/// onto the device of this name. Without a `dtype` its weights become 32-bit
/// numbers on the CPU and what the checkpoint has on a GPU.
///
/// # Errors
/// A file is missing or wrong, or the device cannot be used.
pub fn load(dir: &Path, device: &str, dtype: Option<Dtype>) -> Result<(Model, TextModel), ServeError> {
    let device = device::select(device)?;
    let text = TextModel::load(dir)?;
    let kind = match dtype {
        Some(dtype) => dtype.kind(),
        None if device == Device::Cpu => Kind::Float,
        None => stored_kind(dir)?,
    };
    let model = Model::load(dir, kind, device).map_err(|error| error.during(Phase::Loading))?;
    model.config().check_vocabulary(text.tokenizer.vocab_size())?;
    Ok((model, text))
}
