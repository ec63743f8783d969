//! The test programs that cargo built, and the runs of one.

use super::libtest;
use super::timeline::Timeline;
use crate::command::Call;
use crate::failure::{Failure, Result};
use crate::ui::{self, Seconds};
use serde_json::Value;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The programs that take a minute or more, the slowest first. They begin first: one that begins last runs alone.
const SLOWEST: [&str; 16] = [
    "cli/languages",
    "harness/standard_plugins",
    "scoring/scoring",
    "cli/tools",
    "train (lib)",
    "cli/schedule",
    "cli/ranks",
    "harness/harness",
    "agent/mcp",
    "plugin/hostile",
    "cli/agents",
    "cli/train",
    "cli/lora",
    "cli/wrap",
    "cli/out_of_memory",
    "cli/replay",
];

/// The variable with a program that runs each test program, which is its first argument: `.ci/under` is one.
const RUNNER: &str = "GAVEL_TEST_RUNNER";

/// A test program.
#[derive(Debug, PartialEq)]
pub struct Program {
    /// Its package and its name there.
    pub title: String,
    pub executable: PathBuf,
    /// The folder of its package, where cargo runs it.
    pub folder: PathBuf,
    /// Its name among the package's tests; `None` for the tests in `src/`.
    pub test: Option<String>,
}

impl Program {
    /// Runs all tests of it. Returns the names of tests that failed: none if it failed without naming them. `None` if it
    /// passed.
    pub fn run(&self, variables: &[(&str, &OsStr)], timeline: &Timeline) -> Result<Option<Vec<String>>> {
        let begun = Instant::now();
        eprintln!("{} begins", self.title);
        timeline.event(&self.title, "begins")?;
        let ended = self.call(&[], variables).quietly(&format!("the tests of {} failed", self.title));
        let (time, what) = (begun.elapsed(), if ended.result.is_ok() { "passed" } else { "failed" });
        timeline.end(&self.title, what, time)?;
        eprintln!("{} {what} ({})", self.title, Seconds(time));
        let Err(failure) = ended.result else { return Ok(None) };
        ui::report(&failure);
        Ok(Some(libtest::failed_tests(&ended.printed, ended.code).unwrap_or_default()))
    }

    /// Whether a test passes that failed before.
    pub fn passes_alone(&self, test: &str, variables: &[(&str, &OsStr)], timeline: &Timeline) -> Result<bool> {
        let title = format!("{} {test}", self.title);
        eprintln!("{title} runs again, alone");
        timeline.event(&title, "begins again")?;
        let ended = self.call(&["--exact", test], variables).quietly(&format!("{title} failed again"));
        if let Err(failure) = &ended.result {
            ui::report(failure);
        }
        let passed = ended.result.is_ok() && libtest::one_test_passed(&ended.printed);
        timeline.event(&title, if passed { "passed" } else { "failed" })?;
        Ok(passed)
    }

    /// The command that runs it, through `runner` if there is one.
    fn words<'a>(&'a self, runner: Option<&'a OsStr>, arguments: &'a [&'a str]) -> Vec<&'a OsStr> {
        let program = runner.into_iter().chain([self.executable.as_os_str()]);
        program.chain(arguments.iter().map(|argument| OsStr::new(*argument))).collect()
    }

    fn call(&self, arguments: &[&str], variables: &[(&str, &OsStr)]) -> Call {
        let runner = std::env::var_os(RUNNER);
        let words = self.words(runner.as_deref(), arguments);
        // As cargo runs it, which sets this folder's variable too.
        let call = Call::new(words[0], &words[1..]).within(&self.folder);
        let call = call.env("CARGO_MANIFEST_DIR", &self.folder);
        variables.iter().fold(call, |call, (name, value)| call.env(name, value))
    }
}

/// The test programs that cargo says it built, in its messages.
pub fn programs(messages: &str) -> Result<VecDeque<Program>> {
    let program = |line: &str| -> Option<Program> {
        let message: Value = serde_json::from_str(line).ok()?;
        let is_test = message["profile"]["test"] == true;
        let executable = message["executable"].as_str().filter(|_| is_test)?;
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
        let (package, target) = (folder.file_name()?.to_string_lossy(), message["target"]["name"].as_str()?);
        let kind = message["target"]["kind"][0].as_str()?;
        let test = (kind == "test").then(|| target.to_owned());
        let title = if kind == "test" { format!("{package}/{target}") } else { format!("{package} ({kind})") };
        Some(Program { title, executable: executable.into(), folder: folder.into(), test })
    };
    let programs: VecDeque<Program> = messages.lines().filter_map(program).collect();
    if programs.is_empty() {
        return Err(Failure::new("cargo named no test program"));
    }
    Ok(programs)
}

/// The programs in the order in which they begin.
pub fn slowest_first(programs: VecDeque<Program>) -> Result<VecDeque<Program>> {
    let place = |title: &str| SLOWEST.iter().position(|slow| *slow == title).unwrap_or(SLOWEST.len());
    if let Some(gone) = SLOWEST.iter().find(|slow| programs.iter().all(|program| program.title != **slow)) {
        return Err(Failure::new(format!("there is no test program {gone}"))
            .hint("give it its new name in the list of slow programs, xtask/src/test_programs/programs.rs"));
    }
    let mut programs = Vec::from(programs);
    programs.sort_by_key(|program| place(&program.title));
    Ok(programs.into())
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn program(title: &str, executable: PathBuf) -> Program {
        Program { title: title.into(), executable, folder: "/".into(), test: None }
    }

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
        let found: Vec<_> = found
            .iter()
            .map(|program| (&*program.title, program.executable.to_str().unwrap(), program.test.as_deref()))
            .collect();
        assert_eq!(found, [("data/rows", "/g/target/rows", Some("rows")), ("data (lib)", "/g/target/lib", None)]);
        assert_eq!(programs("").unwrap_err().to_string(), "cargo named no test program");
    }

    #[test]
    fn a_runner_is_given_the_program_and_its_arguments() {
        let program = program("p", "/g/p".into());
        assert_eq!(program.words(None, &["--exact", "a b"]), ["/g/p", "--exact", "a b"]);
        assert_eq!(program.words(Some(OsStr::new("run")), &["a"]), ["run", "/g/p", "a"]);
    }

    #[test]
    fn slow_programs_begin_first() {
        let titles = ["data (lib)", "text (lib)"].into_iter().chain(SLOWEST.into_iter().rev());
        let programs: VecDeque<Program> = titles.map(|title| program(title, PathBuf::new())).collect();
        let ordered = slowest_first(programs).unwrap();
        let ordered: Vec<&str> = ordered.iter().map(|program| &*program.title).collect();
        assert_eq!(ordered, [&SLOWEST[..], &["data (lib)", "text (lib)"]].concat());
        let error = slowest_first([program("data (lib)", PathBuf::new())].into()).unwrap_err().to_string();
        assert!(error.starts_with("there is no test program cli/languages\nhint: "), "{error}");
    }
}
