//! The policy: a language model in libtorch, its checkpoints in the layout of
//! Hugging Face, its forward pass with gradients, and the rollout engine that
//! samples from it.
//!
//! [`Model`] is trained. [`Engine`] decodes many requests together, one token a
//! [`step`](Engine::step). Nothing here draws from libtorch's global random
//! generator.

mod architecture;
mod attention;
mod checkpoint;
mod checksums;
pub mod config;
pub mod device;
mod dtype;
pub mod engine;
mod error;
pub mod fast_paths;
mod forward;
mod fp8;
mod head;
mod init;
mod json_file;
mod layer;
mod layer_parts;
mod linear;
mod lora;
mod mask;
pub mod memory;
pub mod model;
mod model_folder;
mod norm;
mod offload;
mod out_of_memory;
mod packed;
mod quantization;
mod quantized_model;
mod rotary;
pub mod sampling;
mod tensor_file;
pub mod threads;
mod token_logprobs;
mod training_pass;
mod wide_logits;

pub use architecture::Architecture;
pub use checkpoint::stored_kind;
pub use config::{Head, ModelConfig, RopeScaling};
pub use dtype::Dtype;
pub use engine::{
    CacheUse, DrawnToken, Engine, EngineConfig, EngineStep, Finished, Lookup, Proposals, Request, cache_budget,
};
pub use error::PolicyError;
pub use fast_paths::CudaFastPaths;
pub use head::score_place;
pub use lora::{LoraConfig, Module, adapter_parameters};
pub use model::Model;
pub use model_folder::ModelFolder;
pub use offload::HostWeights;
pub use out_of_memory::Phase;
pub use packed::{MASK_NUMBERS, Packed, PackedRow, take_rows};
pub use quantization::Quantization;
pub use sampling::Sampling;
pub use tch::{Device, Kind, Tensor};
pub use tensor_file::{file_dtype, write_tensors};
pub use training_pass::{Moment, Stage, TrainingPass};
