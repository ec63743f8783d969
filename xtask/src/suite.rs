//! `cargo xtask test`: runs every test and prints a summary.

use crate::command::Call;
use crate::failure::{Failure, Result};
use crate::test_programs::Report;
use crate::ui::Seconds;
use crate::{guests, python, setup, structure, test_programs, ui};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

/// Sets up, builds what the tests load, and runs all tests. If one part fails,
/// the others still run.
pub fn run(root: &Path) -> Result<()> {
    let libtorch = setup::all(root)?;
    guests::build(root)?;
    // The tests make plugins in every language. These tools come before the machine's own.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [python::test_tools()?].into_iter().chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders).map_err(|error| Failure::new("cannot extend PATH").why(error))?;

    let report = RefCell::new(Report::default());
    let host = || {
        // Property tests draw the same samples each time.
        let seed = OsStr::new("1");
        let variables = [("LIBTORCH", libtorch.as_os_str()), ("PATH", &path), ("PROPTEST_RNG_SEED", seed)];
        test_programs::run(root, &variables, &mut report.borrow_mut())
    };
    let plugins = || {
        // Without optimisation: only their logic is tested, and their release profile takes minutes to link.
        // The SDK is tested with the host.
        let arguments = ["test", "--workspace", "--exclude", "gavel-sdk", "--no-fail-fast"];
        Call::cargo(arguments).within(&root.join("plugins")).show("tests of the plugins failed")
    };
    let python = || {
        let arguments = ["-m", "unittest", "discover", "-s", "tests"];
        Call::new("python3", arguments).within(&root.join("sdk/python")).show("tests of the Python SDK failed")
    };
    let js = || {
        let tested = Call::new("node", ["--test", "test/"]).within(&root.join("sdk/js"));
        tested.show("tests of the JavaScript SDK failed").map_err(|failure| failure.hint("install Node.js 20 or newer"))
    };
    let all_used = || guests::check_all_are_used(root);
    let crates = || structure::check_crates(root);
    let rooms = || structure::check_rooms(root);
    let circles = || structure::check_circles(root);
    let parts: [(&str, &dyn Fn() -> Result<()>); 8] = [
        ("crates depend only on those above them", &crates),
        ("folders depend only on those above them", &rooms),
        ("no circles of files", &circles),
        ("host", &host),
        ("plugins' own logic", &plugins),
        ("Python SDK", &python),
        ("JavaScript SDK", &js),
        ("every test guest is used", &all_used),
    ];

    let mut results = Vec::new();
    for (name, test) in parts {
        eprintln!("{}", ui::bold(&format!("test: {name}")));
        let begun = Instant::now();
        let result = test();
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
