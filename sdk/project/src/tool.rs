//! Runs the tools of a language and keeps their output for the user.

use crate::error::Error;
use std::io::ErrorKind;
use std::process::{Command, ExitStatus, Output};

/// A tool that a language needs on the machine.
#[derive(Debug, PartialEq, Eq)]
pub struct Tool {
    /// Its name, such as `cargo`.
    pub name: &'static str,
    /// Its purpose, after "it", such as `compiles Rust`.
    pub purpose: &'static str,
    /// The command that installs it.
    pub install: &'static str,
}

/// Runs `command` of `tool` to its end, whether or not it succeeds.
///
/// # Errors
/// [`Error::MissingTool`] if the tool is not installed.
pub(crate) fn output(command: &mut Command, tool: &'static Tool) -> Result<Output, Error> {
    // Dates in the output would make every build different.
    if std::env::var_os("SOURCE_DATE_EPOCH").is_none() {
        command.env("SOURCE_DATE_EPOCH", "0");
    }
    command.output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::missing(tool),
        _ => Error::Failed { what: format!("cannot run {}", tool.name), said: error.to_string() },
    })
}

/// The output of a tool.
#[derive(Debug, Default)]
pub(crate) struct ToolOutput {
    /// On standard output.
    pub(crate) out: String,
    /// On standard error.
    pub(crate) err: String,
}

impl ToolOutput {
    /// Both outputs, joined.
    pub(crate) fn all(self) -> String {
        self.out + &self.err
    }
}

/// Runs `command` of `tool` to its end and returns its output.
///
/// # Errors
/// [`Error::MissingTool`] if the tool is not installed; [`Error::Failed`] with
/// its whole output, introduced by `what`, if it fails.
pub(crate) fn run(command: &mut Command, tool: &'static Tool, what: &str) -> Result<ToolOutput, Error> {
    let output = output(command, tool)?;
    let said = ToolOutput { out: text(&output.stdout), err: text(&output.stderr) };
    if output.status.success() { Ok(said) } else { Err(failed(output.status, tool, what, said.all())) }
}

/// The error of a tool that failed.
pub(crate) fn failed(status: ExitStatus, tool: &Tool, what: &str, said: String) -> Error {
    let how = status.code().map_or("was killed".into(), |code| format!("failed with status {code}"));
    Error::Failed { what: format!("{what}: {} {how}", tool.name), said }
}

/// A tool's output as text for people.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether `command` runs and succeeds; its output is dropped.
pub(crate) fn works(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// The first output of `command` if it succeeds, such as a version.
pub(crate) fn version(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(text(&output.stdout).lines().next().unwrap_or_default().trim().to_owned())
}
