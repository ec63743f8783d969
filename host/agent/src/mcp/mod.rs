//! MCP servers as tools: for what cannot be a component.

mod answer;
mod connection;
mod damaged;
mod error;
mod link;
mod server;
mod spec;
mod stdio;

pub use error::McpError;
pub use server::McpServer;
pub use spec::{McpSource, McpSpec};
