//! Running other programs, with failures that name the command.

use crate::failure::{Failure, Result};
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// How many of the last lines of a quiet command go into the report of its
/// failure.
const LINES_KEPT: usize = 20;

/// A command to run.
pub struct Call {
    command: Command,
    shown: String,
}

/// How a command ended that [`Call::quietly`] ran.
pub struct Quiet {
    /// Its standard output.
    pub printed: String,
    /// Its exit code; `None` if a signal ended it or it was not started.
    pub code: Option<i32>,
    pub result: Result<()>,
}

impl Call {
    /// A call of `program`.
    pub fn new<A: AsRef<OsStr>>(program: impl AsRef<OsStr>, arguments: impl IntoIterator<Item = A>) -> Self {
        let mut command = Command::new(&program);
        command.args(arguments);
        let shown = shown(&command);
        Self { command, shown }
    }

    /// A call of the cargo that runs this program.
    pub fn cargo<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Self {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut call = Self::new(cargo, arguments);
        // `cargo run` tells this program about its package. Build scripts that read these variables would run again, and
        // what depends on them would be compiled again.
        for name in std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()) {
            if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
                call.command.env_remove(name);
            }
        }
        // A reader of the failure repeats the command with the cargo on the
        // path.
        if let Some((_, arguments)) = call.shown.split_once(' ') {
            call.shown = format!("cargo {arguments}");
        }
        call
    }

    /// A call of git, which finds its repository by its folder: hooks and `git rebase --exec` set another one.
    pub fn git<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Self {
        let names = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"];
        names.into_iter().fold(Self::new("git", arguments), Self::without_env)
    }

    /// Runs it in `folder`.
    pub fn within(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self.shown = format!("cd {} && {}", quoted(folder.as_os_str()), self.shown);
        self
    }

    /// Sets a variable of its environment.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Removes a variable of its environment.
    pub fn without_env(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Runs it and returns its standard output, trimmed. Both outputs are kept
    /// for the report of a failure.
    pub fn read(mut self, what: &str) -> Result<String> {
        let output = self.command.stdin(Stdio::null()).output().map_err(|error| self.not_started(what, &error))?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if output.status.success() {
            return Ok(text);
        }
        let printed = format!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
        let lines: Vec<&str> = printed.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(LINES_KEPT)..].iter().map(|&line| line.to_owned()).collect();
        Err(Failure::new(what).command(self.shown, last).why(output.status))
    }

    /// Runs it and keeps both its outputs, all of which are shown if it fails.
    pub fn quietly(mut self, what: &str) -> Quiet {
        let output = match self.command.stdin(Stdio::null()).output() {
            Ok(output) => output,
            Err(error) => {
                let result = Err(self.not_started(what, &error));
                return Quiet { printed: String::new(), code: None, result };
            }
        };
        if !output.status.success() {
            let mut stderr = std::io::stderr().lock();
            // Where the standard error is closed, the report below is lost too.
            let _ = stderr.write_all(&output.stdout).and_then(|()| stderr.write_all(&output.stderr));
        }
        Quiet {
            printed: String::from_utf8_lossy(&output.stdout).into_owned(),
            code: output.status.code(),
            result: self.ended(what, output.status),
        }
    }

    /// Runs it and parses its standard output as JSON, whatever its exit status. Its standard error goes to ours.
    pub fn json(mut self, what: &str) -> Result<serde_json::Value> {
        let output = self.command.stderr(Stdio::inherit()).output().map_err(|error| self.not_started(what, &error))?;
        serde_json::from_slice(&output.stdout).map_err(|error| {
            Failure::new(what)
                .command(self.shown, Vec::new())
                .why(format!("{}; its output is not JSON: {error}", output.status))
        })
    }

    /// Runs it with its output going to ours.
    pub fn show(mut self, what: &str) -> Result<()> {
        let status = self.command.status().map_err(|error| self.not_started(what, &error))?;
        self.ended(what, status)
    }

    /// Runs it with its standard error going to ours, and returns its standard
    /// output, trimmed.
    pub fn answer(mut self, what: &str) -> Result<String> {
        let output = self.command.stderr(Stdio::inherit()).output().map_err(|error| self.not_started(what, &error))?;
        self.ended(what, output.status)?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    fn ended(self, what: &str, status: ExitStatus) -> Result<()> {
        if status.success() {
            return Ok(());
        }
        Err(Failure::new(what).command(self.shown, Vec::new()).why(format!("{status}; its output is above")))
    }

    fn not_started(&self, what: &str, error: &std::io::Error) -> Failure {
        let program = self.command.get_program().to_string_lossy();
        let why = match error.kind() {
            std::io::ErrorKind::NotFound => format!("there is no program `{program}` on the PATH"),
            _ => format!("`{program}` could not be started: {error}"),
        };
        Failure::new(what).command(self.shown.clone(), Vec::new()).why(why)
    }
}

fn shown(command: &Command) -> String {
    std::iter::once(command.get_program()).chain(command.get_args()).map(quoted).collect::<Vec<_>>().join(" ")
}

/// `word` as a POSIX shell reads it.
fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:+,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_shows_the_command_its_output_and_its_status() {
        let error =
            Call::new("sh", ["-c", "echo out; echo err >&2; exit 3"]).read("it failed").unwrap_err().to_string();
        assert_eq!(
            error,
            "it failed\n  command: sh -c 'echo out; echo err >&2; exit 3'\n  why: exit status: 3\n  | out\n  | err"
        );
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let error = Call::new("sh", ["-c", "seq 100; exit 1"]).read("it failed").unwrap_err().to_string();
        assert!(error.contains("| 81\n") && error.ends_with("| 100") && !error.contains("| 80\n"), "{error}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = Call::new("no-such-program", ["x"]).read("it failed").unwrap_err().to_string();
        assert!(error.contains("there is no program `no-such-program` on the PATH"), "{error}");
    }

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        let quoted = |word: &str| quoted(OsStr::new(word));
        assert_eq!(quoted("--set"), "--set");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
