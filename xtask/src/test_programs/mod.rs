//! The host's test programs, several at once. `cargo test` runs one after the
//! other, and waits for the last test of each with idle cores.

mod libtest;
mod programs;
mod timeline;

pub use programs::Program;

use crate::command::Call;
use crate::failure::{Failure, Result};
use crate::setup::cannot;
use crate::ui::Seconds;
use programs::{programs, slowest_first};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use timeline::Timeline;

/// How many run at once. Each of them runs one test per core, so that two are
/// enough to keep the cores busy while one comes to its end.
const AT_ONCE: usize = 2;

/// How many failed tests are run again. Where more fail, it is no chance.
const REPEATED: usize = 10;

/// The log of a run, from the root.
const TIMELINE: &str = "target/test-timeline.txt";

/// The flaky tests of a run, from the root, one a line: `.ci/run` ends with them.
const FLAKY: &str = "target/flaky-tests.txt";

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

#[cfg(test)]
mod tests {
    use super::programs::tests::program;
    use super::*;
    use std::process::Command;

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
        let fails_and_crashes = fails(&["one"], PASS).replace("exit 101", "kill -ABRT $$");
        for script in ["kill -ABRT $$", &fails_and_crashes] {
            assert_eq!(run_script(script), (vec!["p".into()], vec![], 1), "{script}");
        }
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
