//! The model that is measured.

use crate::model_args::PlaceArgs;
use anyhow::{Context, Result};
use clap::Args;
use gavel_data::seed;
use gavel_policy::{Dtype, Kind, Model, ModelConfig, PolicyError, device, stored_kind};
use std::path::PathBuf;

/// Which model, and where.
#[derive(Args)]
pub struct BenchModelArgs {
    /// The checkpoint: a folder with config.json and model.safetensors, or a LoRA adapter.
    #[arg(long, short, value_name = "DIR", required_unless_present = "init", conflicts_with = "init")]
    model: Option<PathBuf>,
    /// A config.json, for random weights of these sizes; bfloat16 on a GPU, unless --dtype is set.
    #[arg(long, value_name = "FILE")]
    init: Option<PathBuf>,
    #[command(flatten)]
    place: PlaceArgs,
}

impl BenchModelArgs {
    pub fn load(&self) -> Result<Model> {
        let device = device::select(self.place.device())?;
        if let Some(dir) = &self.model {
            let kind = Dtype::or_of_device(self.place.dtype, device, || stored_kind(dir))?;
            return Ok(Model::load(dir, kind, device)?);
        }
        let path = self.init.as_deref().context("there is neither --model nor --init")?;
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let config: ModelConfig = serde_json::from_str(&text)
            .with_context(|| format!("{} is not the configuration of a model", path.display()))?;
        let kind = Dtype::or_of_device(self.place.dtype, device, || Ok::<_, PolicyError>(Kind::BFloat16))?;
        Ok(Model::noise(config, kind, device)?)
    }
}

/// The dtype of the model's weights, by its name in `--dtype`.
pub fn dtype(model: &Model) -> &'static str {
    match model.kind() {
        Kind::BFloat16 => "bfloat16",
        Kind::Half => "float16",
        _ => "float32",
    }
}

/// `count` tokens of the prompt number `number`.
pub fn prompt(config: &ModelConfig, number: u64, count: usize) -> Vec<u32> {
    (0..count as u64).map(|i| (seed::uniform(number, i) * config.vocab_size as f64) as u32).collect()
}
