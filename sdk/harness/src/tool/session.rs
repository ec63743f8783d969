//! A session of a tool, like a trajectory's session.

use super::call::FunctionCall;
use crate::error::HarnessError;
use crate::plugin::LoadedPlugin;
use gavel_data::seed::{Purpose, derive};
use gavel_data::{Json, Outcome};
use gavel_plugin::{OutsideWaits, SessionRooms, Tool, ToolReport, ToolSession};
use serde_json::Value;
use std::sync::Arc;

/// A session of a tool: the calls of one trajectory, which share their state.
pub struct Session<'a> {
    plugin: &'a LoadedPlugin,
    tool: &'a Tool,
    session: ToolSession,
    seed: u64,
    /// Calls so far.
    calls: u64,
}

impl LoadedPlugin {
    /// Opens a session, for which a dataset's row sets `settings`, a JSON object. It holds the memory of a session
    /// until it is dropped. The seed of the tool's random numbers is 0. Do not call it from asynchronous code.
    ///
    /// # Errors
    /// The plugin is not a tool.
    pub fn session(&self, settings: Value) -> Result<Session<'_>, HarnessError> {
        self.block_on(self.open(settings.to_string(), 0))
    }

    /// Opens a session; `seed` determines the tool's random numbers.
    pub(crate) async fn open(&self, settings: String, seed: u64) -> Result<Session<'_>, HarnessError> {
        let tool = self.tool().ok_or_else(|| HarnessError::NotATool(self.name().to_owned()))?;
        let rooms = SessionRooms::wait(None, [tool]).await.ok_or(HarnessError::ShutDown)?;
        let session = tool.session(Arc::new(rooms), settings, OutsideWaits::default());
        Ok(Session { plugin: self, tool, session, seed, calls: 0 })
    }
}

impl Session<'_> {
    /// Calls the function `name` as an episode does: the arguments are checked against its schema first. If `arguments`
    /// is a text, it is the policy's own text and need not be JSON. Do not call this from asynchronous code.
    pub fn call(&mut self, name: &str, arguments: Value) -> FunctionCall {
        let arguments = match arguments {
            Value::String(written) => written,
            arguments => arguments.to_string(),
        };
        let plugin = self.plugin;
        plugin.block_on(self.ask(name, &arguments))
    }

    /// Calls the function `name` with the policy's own text as arguments.
    pub(crate) async fn ask(&mut self, name: &str, arguments: &str) -> FunctionCall {
        let seed = derive(self.seed, self.calls, 0, Purpose::Tool);
        self.calls += 1;
        let report = match self.tool.check(name, arguments) {
            Ok(()) => self.session.call(name, arguments, seed).await,
            Err(what) => ToolReport::called_wrongly(what),
        };
        FunctionCall::new(self.plugin.name(), name, arguments, report)
    }

    /// Ends the session as an episode does, and returns the state in which the tool ended; `None` if it has none. Do
    /// not call this from asynchronous code.
    ///
    /// # Errors
    /// The tool failed to report it.
    pub fn finish(mut self) -> Result<Option<Value>, Outcome> {
        let plugin = self.plugin;
        // The host has read it as JSON.
        plugin.block_on(self.end()).map(|state| state.and_then(|state| state.parse().ok()))
    }

    /// Ends the session; the state in which the tool ended.
    pub(crate) async fn end(&mut self) -> Result<Option<Json>, Outcome> {
        self.session.finish(derive(self.seed, self.calls, 0, Purpose::Tool)).await
    }
}
