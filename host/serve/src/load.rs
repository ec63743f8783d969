//! A model from its folder.

use crate::error::ServeError;
use gavel_policy::{Device, Dtype, Kind, Model, ModelFolder, Phase, device, stored_kind};
use gavel_text::TextModel;
use std::path::Path;

/// The kind that weights become on `device`: that of `dtype`, or without one
/// 32 bits on the CPU and `stored`, the checkpoint's, on a GPU.
///
/// # Errors
/// Those of `stored`.
pub fn kind<E>(dtype: Option<Dtype>, device: Device, stored: impl FnOnce() -> Result<Kind, E>) -> Result<Kind, E> {
    match dtype {
        Some(dtype) => Ok(dtype.kind()),
        None if device == Device::Cpu => Ok(Kind::Float),
        None => stored(),
    }
}

/// Loads the checkpoint in the folder `dir`, or the adapter in it with its
/// base, its tokenizer and chat template, onto the device of this name, as
/// numbers of [`kind`].
///
/// # Errors
/// A file is missing or wrong, or the device cannot be used.
pub fn load(dir: &Path, device: &str, dtype: Option<Dtype>) -> Result<(Model, TextModel), ServeError> {
    let device = device::select(device)?;
    let folder = ModelFolder::open(dir)?;
    let text = TextModel::load_with(&folder.text, &folder.base)?;
    let kind = kind(dtype, device, || stored_kind(dir))?;
    let model = Model::load(dir, kind, device).map_err(|error| error.during(Phase::Loading))?;
    model.config().check_vocabulary(text.tokenizer.vocab_size())?;
    Ok((model, text))
}
