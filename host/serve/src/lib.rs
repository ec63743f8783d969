//! A model as a service: an HTTP server that speaks the OpenAI API.

mod metrics;
pub mod openai;

pub use metrics::Metrics;
