//! The folders of a model's parts: one folder, or one for an adapter and one
//! for its base.

use crate::error::{PolicyError, Result};
use crate::lora::adapter_config::AdapterConfigFile;
use std::path::{Path, PathBuf};

/// The folders that a model is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFolder {
    /// `config.json` and the weights.
    pub base: PathBuf,
    /// `adapter_config.json` and `adapter_model.safetensors`, if there is an
    /// adapter.
    pub adapter: Option<PathBuf>,
    /// The tokenizer and the chat template: the adapter's own or, if it has none, the base's.
    pub text: PathBuf,
}

impl ModelFolder {
    /// Looks into the folder `dir`. An adapter has `adapter_config.json`, whose
    /// `base_model_name_or_path` is the folder of its base, relative to the
    /// current folder.
    ///
    /// # Errors
    /// The base of an adapter is not there, or is itself an adapter.
    pub fn open(dir: &Path) -> Result<Self> {
        if !AdapterConfigFile::path(dir).exists() {
            return Ok(Self { base: dir.to_owned(), adapter: None, text: dir.to_owned() });
        }
        let wrong = |what: String| PolicyError::Checkpoint { path: AdapterConfigFile::path(dir), what };
        let Some(base) =
            AdapterConfigFile::load(dir)?.base_model_name_or_path.filter(|base| !base.as_os_str().is_empty())
        else {
            return Err(wrong(
                "`base_model_name_or_path` is missing\nhint: write the folder of the adapter's base there".into(),
            ));
        };
        if !base.is_dir() {
            return Err(wrong(format!(
                "`base_model_name_or_path` {base:?} is not a folder here\nhint: download that model, and write its folder there"
            )));
        }
        if AdapterConfigFile::path(&base).exists() {
            return Err(wrong(format!(
                "`base_model_name_or_path` {base:?} is itself an adapter\nhint: merge it first with `gavel merge`"
            )));
        }
        let text = if dir.join("tokenizer.json").exists() { dir.to_owned() } else { base.clone() };
        Ok(Self { base, adapter: Some(dir.to_owned()), text })
    }
}
