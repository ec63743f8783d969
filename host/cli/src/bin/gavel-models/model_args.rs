//! The options that choose a model.

use anyhow::Result;
use bytesize::ByteSize;
use clap::Args;
use gavel::plugin_args::bytes;
use gavel_policy::{CudaFastPaths, Dtype, EngineConfig, cache_budget};
use gavel_rollout::{AsyncEngine, Observer, Reading, RewardModel, RewardModelConfig, load};
use gavel_runs::check_weights;
use std::path::PathBuf;
use std::sync::Arc;

/// The device of a model, and the dtype of its weights.
#[derive(Args)]
pub struct PlaceArgs {
    /// The device: auto, cpu or cuda:N.
    #[arg(long, value_name = "NAME", default_value = "auto")]
    device: String,
    /// The dtype of the weights: float32, bfloat16 or float16; by default float32 on the CPU, and the checkpoint's on a
    /// GPU.
    #[arg(long, value_name = "TYPE")]
    pub dtype: Option<Dtype>,
    /// Whether faster operations are used on a GPU once a check has found them equal to the plain ones: auto or off.
    #[arg(long, value_name = "WHEN", default_value_t)]
    cuda_fast_paths: CudaFastPaths,
}

impl PlaceArgs {
    /// The name of the device, for a process that is prepared for it.
    pub fn device(&self) -> &str {
        self.cuda_fast_paths.apply();
        &self.device
    }
}

/// Which model, on which device, and how much it decodes at once.
#[derive(Args)]
// clap leaves a group with nested arguments empty, and `Option<ModelArgs>` is `None` without it.
#[group(arg = "model")]
pub struct ModelArgs {
    /// The checkpoint: a folder, or a name on the Hugging Face hub such as Qwen/Qwen3-0.6B. It has config.json,
    /// model.safetensors and tokenizer.json; a LoRA adapter has adapter_config.json and adapter_model.safetensors.
    #[arg(long, short, value_name = "DIR")]
    pub model: PathBuf,
    #[command(flatten)]
    place: PlaceArgs,
    /// The most responses that are decoded together.
    #[arg(long, value_name = "N", default_value_t = EngineConfig::default().max_batch)]
    max_batch: usize,
    /// The most memory for keys and values, such as 8GiB; by default nine tenths of what is free once the model is
    /// loaded, less what a decoding step needs.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    cache_memory: Option<usize>,
}

impl ModelArgs {
    /// The folder of the checkpoint.
    pub fn folder(&self) -> Result<PathBuf> {
        let folder = gavel_hub::model(&self.model)?.into_owned();
        check_weights(&folder)?;
        Ok(folder)
    }

    /// Loads a sequence classifier and starts its thread.
    pub fn start_classifier(&self) -> Result<RewardModel> {
        let (model, text) = load(&self.folder()?, self.place.device(), self.place.dtype)?;
        let config = RewardModelConfig { reading: Reading::Labels, ..RewardModelConfig::default() };
        Ok(RewardModel::start(model, text, config, Arc::default())?)
    }

    /// Loads a language model and starts the thread of its device.
    pub fn start(&self, observer: Arc<dyn Observer>) -> Result<AsyncEngine> {
        let (model, text) = load(&self.folder()?, self.place.device(), self.place.dtype)?;
        let config = EngineConfig { max_batch: self.max_batch, ..EngineConfig::default() };
        let cache_bytes = self.cache_memory.or_else(|| cache_budget(&model, &config));
        let engine = AsyncEngine::start(model, text, EngineConfig { cache_bytes, ..config }, observer)?;
        anyhow::ensure!(
            engine.room(0) > 0,
            "--cache-memory {} has no room for any response\nhint: give more, or leave it out",
            ByteSize(cache_bytes.unwrap_or_default() as u64)
        );
        Ok(engine)
    }
}
