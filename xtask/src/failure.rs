//! The report of a failure: what failed, which command, why, and what to do.

use std::fmt;

/// The result of a step.
pub type Result<T> = std::result::Result<T, Failure>;

/// A step that failed.
#[derive(Debug)]
pub struct Failure {
    what: String,
    command: Option<String>,
    output: Vec<String>,
    why: Option<String>,
    hint: Option<String>,
}

impl Failure {
    /// A failure; `what` says in one sentence what failed.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), command: None, output: Vec::new(), why: None, hint: None }
    }

    /// The command that failed and the last lines that it printed.
    pub fn command(mut self, command: String, output: Vec<String>) -> Self {
        self.command = Some(command);
        self.output = output;
        self
    }

    /// Why it failed.
    pub fn why(mut self, why: impl fmt::Display) -> Self {
        self.why = Some(why.to_string());
        self
    }

    /// What the user can do.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(command) = &self.command {
            write!(f, "\n  command: {command}")?;
        }
        if let Some(why) = &self.why {
            write!(f, "\n  why: {why}")?;
        }
        for line in &self.output {
            write!(f, "\n  | {line}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_what_command_why_output_hint() {
        let failure = Failure::new("cannot add it")
            .command("rustup target add x".into(), vec!["error: no network".into()])
            .why("exit status: 1")
            .hint("connect and repeat");
        let expected = "cannot add it\n  command: rustup target add x\n  why: exit status: 1\n  | error: no network\nhint: connect and repeat";
        assert_eq!(failure.to_string(), expected);
    }
}
