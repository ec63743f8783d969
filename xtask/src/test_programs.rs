//! The host's test programs, several at once. `cargo test` runs one after the
//! other, and waits for the last test of each with idle cores.

use crate::command::Call;
use crate::failure::{Failure, Result};
use crate::ui::{self, Seconds};
use serde_json::Value;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// How many run at once. Each of them runs one test per core, so that two are
/// enough to keep the cores busy while one comes to its end.
const AT_ONCE: usize = 2;

/// A test program.
#[derive(Debug, PartialEq)]
struct Program {
    /// Its package and its name there.
    title: String,
    executable: PathBuf,
    /// The folder of its package, where cargo runs it.
    folder: PathBuf,
}

/// Builds and runs all tests of the workspace at `root`, each with these
/// variables. If one fails, the others still run.
pub fn run(root: &Path, variables: &[(&str, &OsStr)]) -> Result<()> {
    let cargo = |arguments: &[&str]| {
        let call = Call::cargo([&["test", "--release", "--workspace"], arguments].concat()).within(root);
        variables.iter().fold(call, |call, (name, value)| call.env(name, value))
    };
    let built = cargo(&["--no-run", "--message-format=json-render-diagnostics"])
        .answer("tests of the host could not be built")?;
    let programs = programs(&built)?;
    let (count, begun) = (programs.len(), Instant::now());
    let waiting = Mutex::new(programs);
    let failed = Mutex::new(Vec::new());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(program) = next() {
                    if let Err(failure) = program.run(variables) {
                        ui::report(&failure);
                        failed.lock().unwrap_or_else(PoisonError::into_inner).push(program.title);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !failed.is_empty() {
        return Err(Failure::new(format!("{} of {count} test programs failed: {}", failed.len(), failed.join(", "))));
    }
    eprintln!("{count} test programs passed ({})", Seconds(begun.elapsed()));
    cargo(&["--doc"]).show("examples in the host's documentation failed")
}

impl Program {
    fn run(&self, variables: &[(&str, &OsStr)]) -> Result<()> {
        let begun = Instant::now();
        eprintln!("{} begins", self.title);
        // As cargo runs it, which sets this folder's variable too.
        let call = Call::new(&self.executable, [] as [&str; 0]).within(&self.folder);
        let call = call.env("CARGO_MANIFEST_DIR", &self.folder);
        let call = variables.iter().fold(call, |call, (name, value)| call.env(name, value));
        call.quietly(&format!("the tests of {} failed", self.title))?;
        eprintln!("{} passed ({})", self.title, Seconds(begun.elapsed()));
        Ok(())
    }
}

/// The test programs that cargo says it built, in its messages.
fn programs(messages: &str) -> Result<VecDeque<Program>> {
    let program = |line: &str| -> Option<Program> {
        let message: Value = serde_json::from_str(line).ok()?;
        let is_test = message["profile"]["test"] == true;
        let executable = message["executable"].as_str().filter(|_| is_test)?;
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
        let (package, target) = (folder.file_name()?.to_string_lossy(), message["target"]["name"].as_str()?);
        let kind = message["target"]["kind"][0].as_str()?;
        let title = if kind == "test" { format!("{package}/{target}") } else { format!("{package} ({kind})") };
        Some(Program { title, executable: executable.into(), folder: folder.into() })
    };
    let programs: VecDeque<Program> = messages.lines().filter_map(program).collect();
    if programs.is_empty() {
        return Err(Failure::new("cargo named no test program"));
    }
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_found_among_the_messages_of_cargo() {
        let message = |kind: &str, test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/g/host/data/Cargo.toml","profile":{{"test":{test}}},"target":{{"name":"rows","kind":["{kind}"]}},"executable":{executable}}}"#
            )
        };
        let messages = [
            message("test", true, r#""/g/target/rows""#),
            message("lib", true, r#""/g/target/lib""#),
            message("lib", false, "null"),
            message("bin", false, r#""/g/target/gavel""#),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let found = programs(&messages.join("\n")).unwrap();
        let found: Vec<_> =
            found.iter().map(|program| (&*program.title, program.executable.to_str().unwrap())).collect();
        assert_eq!(found, [("data/rows", "/g/target/rows"), ("data (lib)", "/g/target/lib")]);
        assert_eq!(programs("").unwrap_err().to_string(), "cargo named no test program");
    }
}
