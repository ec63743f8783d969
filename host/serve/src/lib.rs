//! A model as a service: an HTTP server that speaks the OpenAI API, or the API of classifiers.

pub mod classifier;
mod metrics;
pub mod openai;
pub mod trainable;
mod versions;

pub use metrics::Metrics;
pub use versions::Versions;
