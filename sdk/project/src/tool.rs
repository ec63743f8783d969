//! The tools of a language, run with what they print kept for the user.

use crate::error::Error;
use std::io::ErrorKind;
use std::process::Command;

/// What a language needs on the machine.
#[derive(Debug, PartialEq, Eq)]
pub struct Tool {
    /// Its name, such as `cargo`.
    pub name: &'static str,
    /// What it does, after "it", such as `compiles Rust`.
    pub purpose: &'static str,
    /// The command that installs it.
    pub install: &'static str,
}

/// What a tool printed.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// On standard output.
    pub out: String,
    /// On standard error.
    pub err: String,
}

/// Runs `command` of `tool` to its end.
///
/// # Errors
/// [`Error::MissingTool`] where it is not there; [`Error::Failed`] with all
/// that it printed, introduced by `what`, where it fails.
pub(crate) fn run(command: &mut Command, tool: &'static Tool, what: &str) -> Result<Said, Error> {
    // Dates in what is built would make each build another.
    if std::env::var_os("SOURCE_DATE_EPOCH").is_none() {
        command.env("SOURCE_DATE_EPOCH", "0");
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(Error::MissingTool { tool }),
        Err(error) => {
            let program = command.get_program().to_string_lossy();
            return Err(Error::Failed { what: format!("cannot run {program}"), said: error.to_string() });
        }
    };
    let said = Said {
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    if output.status.success() {
        return Ok(said);
    }
    let status = output.status.code().map_or("was killed".into(), |code| format!("failed with status {code}"));
    Err(Error::Failed { what: format!("{what}: {} {status}", tool.name), said: format!("{}{}", said.out, said.err) })
}

/// Whether `command` runs and succeeds; what it prints is dropped.
pub(crate) fn works(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
