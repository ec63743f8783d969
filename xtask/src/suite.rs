//! `cargo xtask test`: runs every test and prints a summary.

use crate::changed::{self, Selected, Selection};
use crate::command::Call;
use crate::failure::{Failure, Result};
use crate::test_programs::{Program, Report};
use crate::ui::Seconds;
use crate::{c_program, guests, python, setup, structure, test_programs, ui, wheel};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

/// Runs the tests that changes since the commit `base` can have touched.
pub fn run_changed(root: &Path, base: Option<&str>) -> Result<()> {
    let selection = changed::select(root, base)?;
    eprint!("{selection}");
    match &selection {
        Selection::Everything { .. } => run(root, None),
        Selection::Some(selected) => run(root, Some(selected)),
    }
}

/// Sets up, builds what the tests load, and runs all tests, or those that are selected. If one part fails,
/// the others still run.
pub fn run(root: &Path, selected: Option<&Selected>) -> Result<()> {
    let report = RefCell::new(Report::default());
    let host = || {
        let libtorch = setup::all(root)?;
        guests::build(root)?;
        // The tests make plugins in every language. These tools come before the machine's own.
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = [python::test_tools()?].into_iter().chain(std::env::split_paths(&path));
        let path = std::env::join_paths(folders).map_err(|error| Failure::new("cannot extend PATH").why(error))?;
        // Property tests draw the same samples each time.
        let seed = OsStr::new("1");
        let variables = [("LIBTORCH", libtorch.as_os_str()), ("PATH", &path), ("PROPTEST_RNG_SEED", seed)];
        let wanted = selected.map(|selected| move |program: &Program| selected.has(root, program));
        let wanted = wanted.as_ref().map(|wanted| wanted as &dyn Fn(&Program) -> bool);
        test_programs::run(root, &variables, wanted, &mut report.borrow_mut())
    };
    let plugins = || {
        // Without optimisation: only their logic is tested, and their release profile takes minutes to link.
        // The SDK is tested with the host.
        let arguments = ["test", "--workspace", "--exclude", "gavel-sdk", "--no-fail-fast"];
        Call::cargo(arguments).within(&root.join("plugins")).show("tests of the plugins failed")?;
        c_program::test(root)
    };
    let python = || {
        let arguments = ["-m", "unittest", "discover", "-s", "tests"];
        Call::new("python3", arguments).within(&root.join("sdk/python")).show("tests of the Python SDK failed")
    };
    let trainers = || wheel::test(root);
    let js = || {
        let tested = Call::new("node", ["--test", "test/"]).within(&root.join("sdk/js"));
        tested.show("tests of the JavaScript SDK failed").map_err(|failure| failure.hint("install Node.js 20 or newer"))
    };
    let all_used = || guests::check_all_are_used(root);
    let crates = || structure::check_crates(root);
    let features = || structure::check_features(root);
    let rooms = || structure::check_rooms(root);
    let circles = || structure::check_circles(root);
    let links = || structure::check_links(root);
    let parts = [
        part("crates depend only on those above them", true, &crates),
        part("dependencies have the same features without training", true, &features),
        part("folders depend only on those above them", true, &rooms),
        part("no circles of files", true, &circles),
        part("links between pages lead somewhere", true, &links),
        part("host", selected.is_none_or(|selected| !selected.suites.is_empty()), &host),
        part("plugins' and programs' own logic", selected.is_none_or(|selected| selected.plugins), &plugins),
        part("Python SDK", selected.is_none(), &python),
        part("Python package for trainers", selected.is_none_or(Selected::has_trainers), &trainers),
        part("JavaScript SDK", selected.is_none(), &js),
        part("every test guest is used", true, &all_used),
    ];

    let mut results = Vec::new();
    for Part { name, run, .. } in parts.into_iter().filter(|part| part.wanted) {
        eprintln!("{}", ui::bold(&format!("test: {name}")));
        let begun = Instant::now();
        let result = run();
        if let Err(failure) = &result {
            ui::report(failure);
        }
        results.push((name, result.is_ok(), begun.elapsed()));
    }
    print!("{}{}", summary(&results), report.into_inner());
    let failed = results.iter().filter(|(_, passed, _)| !passed).count();
    if failed == 0 {
        return Ok(());
    }
    Err(Failure::new(format!("{failed} of {} parts of the tests failed", results.len()))
        .hint("each failure's report is above, with the command that repeats only that part"))
}

/// A part of the tests.
struct Part<'a> {
    name: &'static str,
    wanted: bool,
    run: &'a dyn Fn() -> Result<()>,
}

fn part<'a>(name: &'static str, wanted: bool, run: &'a dyn Fn() -> Result<()>) -> Part<'a> {
    Part { name, wanted, run }
}

fn summary(results: &[(&str, bool, Duration)]) -> String {
    let line = |&(name, passed, time): &(&str, bool, Duration)| {
        format!("  {:<8} {name} ({})\n", if passed { "passed" } else { "FAILED" }, Seconds(time))
    };
    format!("\ntests:\n{}", results.iter().map(line).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_has_a_line_a_part() {
        let results = [("host", true, Duration::from_secs(61)), ("plugins", false, Duration::from_millis(2500))];
        assert_eq!(summary(&results), "\ntests:\n  passed   host (1 min 01 s)\n  FAILED   plugins (2.5 s)\n");
    }
}
