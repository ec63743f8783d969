//! A model as a service: a thread that owns the device and decodes for
//! everyone who asks, and an HTTP server that speaks the OpenAI API over it.

mod completion;
mod error;
mod generator;
mod load;
mod metrics;
pub mod openai;
mod sampling;

pub use completion::{Completion, Ended, Piece};
pub use error::ServeError;
pub use generator::{Ask, Generator};
pub use load::load;
pub use sampling::default_sampling;
