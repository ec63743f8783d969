//! A model from its folder.

use crate::error::ServeError;
use gavel_policy::{Device, Kind, Model, ModelFolder, device, stored_kind};
use gavel_text::TextModel;
use std::path::Path;
use std::str::FromStr;

/// The numbers that weights are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Dtype {
    /// Those of the checkpoint on a GPU, 32 bits on the CPU.
    #[default]
    Auto,
    /// 32 bits.
    Float32,
    /// 16 bits, the range of 32.
    Bfloat16,
    /// 16 bits, more digits.
    Float16,
}

impl FromStr for Dtype {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "auto" => Ok(Self::Auto),
            "float32" => Ok(Self::Float32),
            "bfloat16" => Ok(Self::Bfloat16),
            "float16" => Ok(Self::Float16),
            _ => Err("use auto, float32, bfloat16 or float16".into()),
        }
    }
}

impl Dtype {
    /// The kind of the weights on `device`, of a checkpoint whose own is `stored`.
    ///
    /// # Errors
    /// Those of `stored`.
    pub fn kind<E>(self, device: Device, stored: impl FnOnce() -> Result<Kind, E>) -> Result<Kind, E> {
        match self {
            Self::Float32 => Ok(Kind::Float),
            Self::Bfloat16 => Ok(Kind::BFloat16),
            Self::Float16 => Ok(Kind::Half),
            Self::Auto if device == Device::Cpu => Ok(Kind::Float),
            Self::Auto => stored(),
        }
    }
}

/// Loads the checkpoint in the folder `dir`, or the adapter in it with its
/// base, its tokenizer and chat template, onto the device of this name.
///
/// # Errors
/// A file is missing or wrong, or the device cannot be used.
pub fn load(dir: &Path, device: &str, dtype: Dtype) -> Result<(Model, TextModel), ServeError> {
    let device = device::select(device)?;
    let folder = ModelFolder::open(dir)?;
    let text = TextModel::load_with(&folder.text, &folder.base)?;
    let kind = dtype.kind(device, || stored_kind(dir))?;
    let model = Model::load(dir, kind, device)?;
    model.config().check_vocabulary(text.tokenizer.vocab_size())?;
    Ok((model, text))
}
