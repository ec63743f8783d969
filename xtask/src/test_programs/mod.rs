//! The host's test programs, several at once. `cargo test` runs one after the
//! other, and waits for the last test of each with idle cores.

mod libtest;
mod timeline;

use crate::command::Call;
use crate::failure::{Failure, Result};
use crate::setup::cannot;
use crate::ui::{self, Seconds};
use serde_json::Value;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use timeline::Timeline;

/// How many run at once. Each of them runs one test per core, so that two are
/// enough to keep the cores busy while one comes to its end.
const AT_ONCE: usize = 2;

/// The programs that take a minute or more, the slowest first. They begin first: one that begins last runs alone.
const SLOWEST: [&str; 12] = [
    "cli/languages",
    "harness/standard_plugins",
    "train (lib)",
    "cli/agents",
    "cli/ranks",
    "cli/tools",
    "cli/schedule",
    "cli/train",
    "cli/lora",
    "cli/wrap",
    "cli/out_of_memory",
    "cli/replay",
];

/// How many failed tests are run again. Where more fail, it is no chance.
const REPEATED: usize = 10;

/// The log of a run, from the root.
const TIMELINE: &str = "target/test-timeline.txt";

/// The flaky tests of a run, from the root, one a line: `.ci/run` ends with them.
const FLAKY: &str = "target/flaky-tests.txt";

/// The variable with a program that runs each test program, which is its first argument: `.ci/under` is one.
const RUNNER: &str = "GAVEL_TEST_RUNNER";

/// A test program.
#[derive(Debug, PartialEq)]
pub struct Program {
    /// Its package and its name there.
    title: String,
    executable: PathBuf,
    /// The folder of its package, where cargo runs it.
    pub folder: PathBuf,
    /// Its name among the package's tests; `None` for the tests in `src/`.
    pub test: Option<String>,
}

/// What a run of the test programs found beside its failures.
#[derive(Default)]
pub struct Report {
    /// The slowest suites, and how busy the machine was.
    times: String,
    /// Tests that failed, and passed when they ran again alone.
    flaky: Vec<String>,
}

/// Builds all tests of the workspace at `root`, and runs the programs that `wanted` chooses, each with these variables.
/// If one fails, the others still run. A test that failed is run again once nothing runs beside it.
pub fn run(
    root: &Path,
    variables: &[(&str, &OsStr)],
    wanted: Option<&dyn Fn(&Program) -> bool>,
    report: &mut Report,
) -> Result<()> {
    let cargo = |arguments: &[&str]| {
        let call = Call::cargo([&["test", "--release", "--workspace"], arguments].concat()).within(root);
        variables.iter().fold(call, |call, (name, value)| call.env(name, value))
    };
    // The whole workspace in any case: with fewer packages, dependencies have other features and are compiled again.
    let built = cargo(&["--no-run", "--message-format=json-render-diagnostics"])
        .answer("tests of the host could not be built")?;
    let mut programs = slowest_first(programs(&built)?)?;
    if let Some(wanted) = wanted {
        programs.retain(wanted);
    }
    let (count, begun) = (programs.len(), Instant::now());
    let timeline = Timeline::begin(&root.join(TIMELINE))?;
    let failed = run_all(programs, variables, &timeline)?;
    let failed = run_again(failed, variables, &timeline, &mut report.flaky)?;
    report.times = timeline.summary();
    write_flaky(&root.join(FLAKY), &report.flaky)?;
    if !failed.is_empty() {
        return Err(Failure::new(format!("{} of {count} test programs failed: {}", failed.len(), failed.join(", "))));
    }
    eprintln!("{count} test programs passed ({})", Seconds(begun.elapsed()));
    // All of them, which takes seconds.
    cargo(&["--doc"]).show("examples in the host's documentation failed")
}

/// A program that failed.
struct Failed {
    program: Program,
    /// The tests of it that failed; none where it crashed.
    tests: Vec<String>,
}

/// Runs the programs and returns those that failed.
fn run_all(programs: VecDeque<Program>, variables: &[(&str, &OsStr)], timeline: &Timeline) -> Result<Vec<Failed>> {
    let waiting = Mutex::new(programs);
    let failed = Mutex::new(Vec::new());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let work = || {
        while let Some(program) = next() {
            if let Some(tests) = program.run(variables, timeline)? {
                failed.lock().unwrap_or_else(PoisonError::into_inner).push(Failed { program, tests });
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers = [(); AT_ONCE].map(|()| scope.spawn(work));
        workers.map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
    .into_iter()
    .collect::<Result<()>>()?;
    Ok(failed.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Runs the failed tests again, one at a time, and returns the programs that still fail.
fn run_again(
    failed: Vec<Failed>,
    variables: &[(&str, &OsStr)],
    timeline: &Timeline,
    flaky: &mut Vec<String>,
) -> Result<Vec<String>> {
    let too_many = failed.iter().map(|failed| failed.tests.len()).sum::<usize>() > REPEATED;
    let mut again = Vec::new();
    for Failed { program, tests } in failed {
        let mut fails = too_many || tests.is_empty();
        for test in if too_many { Vec::new() } else { tests } {
            match program.passes_alone(&test, variables, timeline)? {
                true => flaky.push(format!("{} {test}", program.title)),
                false => fails = true,
            }
        }
        if fails {
            again.push(program.title);
        }
    }
    Ok(again)
}

impl Program {
    /// Runs all tests of it. Returns the names of tests that failed: none if it failed without naming them. `None` if it
    /// passed.
    fn run(&self, variables: &[(&str, &OsStr)], timeline: &Timeline) -> Result<Option<Vec<String>>> {
        let begun = Instant::now();
        eprintln!("{} begins", self.title);
        timeline.event(&self.title, "begins")?;
        let (output, ended) = self.call(&[], variables).quietly(&format!("the tests of {} failed", self.title));
        let (time, what) = (begun.elapsed(), if ended.is_ok() { "passed" } else { "failed" });
        timeline.end(&self.title, what, time)?;
        eprintln!("{} {what} ({})", self.title, Seconds(time));
        Ok(ended.err().map(|failure| {
            ui::report(&failure);
            libtest::failed_tests(&output).unwrap_or_default()
        }))
    }

    /// Whether a test passes that failed before.
    fn passes_alone(&self, test: &str, variables: &[(&str, &OsStr)], timeline: &Timeline) -> Result<bool> {
        let title = format!("{} {test}", self.title);
        eprintln!("{title} runs again, alone");
        timeline.event(&title, "begins again")?;
        let (output, ended) = self.call(&["--exact", test], variables).quietly(&format!("{title} failed again"));
        if let Err(failure) = &ended {
            ui::report(failure);
        }
        let passed = ended.is_ok() && libtest::one_test_passed(&output);
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

/// Writes the list anew; it is empty if no test is flaky.
fn write_flaky(path: &Path, tests: &[String]) -> Result<()> {
    let lines: String = tests.iter().map(|test| format!("{test}\n")).collect();
    fs::write(path, lines).map_err(|error| cannot("write", path, &error))
}

/// Flaky tests come last: nothing else reminds of them.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.times)?;
        if !self.flaky.is_empty() {
            writeln!(f, "\nFLAKY tests, which failed and then passed alone; mend them:")?;
        }
        self.flaky.iter().try_for_each(|test| writeln!(f, "  {test}"))
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
fn slowest_first(programs: VecDeque<Program>) -> Result<VecDeque<Program>> {
    let place = |title: &str| SLOWEST.iter().position(|slow| *slow == title).unwrap_or(SLOWEST.len());
    if let Some(gone) = SLOWEST.iter().find(|slow| programs.iter().all(|program| program.title != **slow)) {
        return Err(Failure::new(format!("there is no test program {gone}"))
            .hint("give it its new name in the list of slow programs, xtask/src/test_programs/mod.rs"));
    }
    let mut programs = Vec::from(programs);
    programs.sort_by_key(|program| place(&program.title));
    Ok(programs.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

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

    fn program(title: &str, executable: PathBuf) -> Program {
        Program { title: title.into(), executable, folder: "/".into(), test: None }
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

    /// Runs a shell script in place of a test program. Returns what still fails, what is flaky, and how often it ran.
    fn run_script(script: &str) -> (Vec<String>, Vec<String>, usize) {
        let folder = tempfile::tempdir().unwrap();
        let (source, executable) = (folder.path().join("source"), folder.path().join("program"));
        fs::write(&source, format!("#!/bin/sh\necho >> {}/runs\n{script}", folder.path().display())).unwrap();
        // A file that this process has had open for writing may still be open in a child of another test.
        let installed = Command::new("install").args(["-m", "755"]).args([&source, &executable]).status().unwrap();
        assert!(installed.success());
        let timeline = Timeline::begin(&folder.path().join("timeline")).unwrap();
        let mut flaky = Vec::new();
        let failed = run_all([program("p", executable)].into(), &[], &timeline).unwrap();
        let failed = run_again(failed, &[], &timeline, &mut flaky).unwrap();
        let runs = fs::read_to_string(folder.path().join("runs")).unwrap().lines().count();
        (failed, flaky, runs)
    }

    /// A script that reports failed tests when all are run, and then does `alone` for each, whose name is `$2`.
    fn fails(tests: &[&str], alone: &str) -> String {
        let names: String = tests.iter().map(|test| format!("    {test}\n")).collect();
        let count = tests.len();
        format!(
            "if [ $# = 0 ]; then\ncat <<'END'\n\nfailures:\n{names}\ntest result: FAILED. 4 passed; {count} failed; 0 ignored\nEND\nexit 101\nfi\n{alone}\n"
        )
    }

    const PASS: &str = "printf '\\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured\\n'";

    #[test]
    fn a_test_that_passes_alone_is_flaky_and_the_run_continues() {
        let (failed, flaky, runs) = run_script(&fails(&["a::one", "two"], PASS));
        assert_eq!((failed, flaky, runs), (vec![], vec!["p a::one".into(), "p two".into()], 3));
    }

    #[test]
    fn two_failures_fail() {
        let (failed, flaky, runs) = run_script(&fails(&["one", "two"], &format!("[ $2 = one ] || exit 101\n{PASS}")));
        assert_eq!((failed, flaky, runs), (vec!["p".into()], vec!["p one".into()], 3));
    }

    #[test]
    fn a_test_that_is_not_found_again_fails() {
        let none = "printf '\\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured\\n'";
        assert_eq!(run_script(&fails(&["one"], none)), (vec!["p".into()], vec![], 2));
    }

    #[test]
    fn a_crash_is_not_run_again() {
        assert_eq!(run_script("kill -ABRT $$"), (vec!["p".into()], vec![], 1));
    }

    #[test]
    fn many_failures_are_not_run_again() {
        let names: Vec<String> = (0..=REPEATED).map(|at| format!("t{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(run_script(&fails(&names, PASS)), (vec!["p".into()], vec![], 1));
        assert_eq!(run_script(&fails(&names[1..], PASS)).2, 1 + REPEATED);
    }

    #[test]
    fn flaky_tests_are_listed_last() {
        let report = Report { times: "slowest suites:\n".into(), flaky: vec!["text (lib) a::one".into()] };
        let expected =
            "slowest suites:\n\nFLAKY tests, which failed and then passed alone; mend them:\n  text (lib) a::one\n";
        assert_eq!(report.to_string(), expected);
        assert_eq!(Report { flaky: vec![], ..report }.to_string(), "slowest suites:\n");
    }

    #[test]
    fn the_list_of_flaky_tests_is_of_the_last_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flaky");
        write_flaky(&path, &["p one".into(), "p two".into()]).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "p one\np two\n");
        write_flaky(&path, &[]).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
    }
}
