//! The policy: a language model in libtorch, its checkpoints in the layout of
//! Hugging Face, its forward pass with gradients, and the rollout engine that
//! samples from it.
//!
//! [`Model`] is what is trained; [`Engine`] decodes many requests together,
//! one token a [`step`](Engine::step). Nothing here draws from libtorch's
//! global random generator.

mod architecture;
mod checkpoint;
pub mod config;
pub mod device;
mod dtype;
pub mod engine;
mod error;
mod folder;
mod forward;
mod head;
mod init;
mod layer;
mod linear;
mod lora;
mod mask;
pub mod memory;
pub mod model;
mod norm;
mod out_of_memory;
mod packed;
mod pass;
mod rotary;
pub mod sampling;
mod tensor_file;

pub use architecture::Architecture;
pub use checkpoint::stored_kind;
pub use config::{ModelConfig, RopeScaling};
pub use dtype::Dtype;
pub use engine::{Drawn, Engine, EngineConfig, Finished, Request, Step};
pub use error::PolicyError;
pub use folder::ModelFolder;
pub use head::Head;
pub use lora::{LoraConfig, Module, adapter_parameters};
pub use model::Model;
pub use out_of_memory::Phase;
pub use packed::{MASK_NUMBERS, Packed, PackedRow, take_rows};
pub use pass::Pass;
pub use sampling::Sampling;
pub use tch::{Device, Kind, Tensor};
pub use tensor_file::{file_dtype, write_tensors};
