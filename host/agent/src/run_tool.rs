//! A tool of a run: a component or an MCP server, and its session in a trajectory.

use crate::mcp::{McpServer, McpSpec};
use gavel_plugin::{OutsideWaits, PluginSpec, SessionRooms, Tool, ToolFunction, ToolSession};
use std::sync::Arc;

/// A tool, as a configuration names it.
#[derive(Debug, Clone)]
pub enum ToolSource {
    /// A component.
    Component(Box<PluginSpec>),
    /// An MCP server.
    Mcp(McpSpec),
}

impl From<PluginSpec> for ToolSource {
    fn from(spec: PluginSpec) -> Self {
        Self::Component(Box::new(spec))
    }
}

impl From<McpSpec> for ToolSource {
    fn from(spec: McpSpec) -> Self {
        Self::Mcp(spec)
    }
}

/// A tool of a run.
pub enum RunTool {
    /// A component.
    Component(Tool),
    /// An MCP server, which all trajectories share.
    Mcp(Arc<McpServer>),
}

impl RunTool {
    /// The name in the run.
    pub fn name(&self) -> &str {
        match self {
            Self::Component(tool) => tool.name(),
            Self::Mcp(server) => server.name(),
        }
    }

    /// Its functions.
    pub fn functions(&self) -> &[ToolFunction] {
        match self {
            Self::Component(tool) => tool.functions(),
            Self::Mcp(server) => server.functions(),
        }
    }

    /// The component, if it is one.
    pub fn component(&self) -> Option<&Tool> {
        match self {
            Self::Component(tool) => Some(tool),
            Self::Mcp(_) => None,
        }
    }

    /// Its session in a trajectory, with what the row sets for it.
    pub(crate) fn session(&self, rooms: Arc<SessionRooms>, settings: String, waits: OutsideWaits) -> RunSession {
        match self {
            Self::Component(tool) => RunSession::Component(Box::new(tool.session(rooms, settings, waits))),
            Self::Mcp(server) => RunSession::Mcp(server.clone(), waits),
        }
    }
}

/// A tool in a trajectory.
pub(crate) enum RunSession {
    Component(Box<ToolSession>),
    Mcp(Arc<McpServer>, OutsideWaits),
}
