//! What a test program prints at its end.

/// The exit code of a program whose tests failed.
const FAILED: i32 = 101;

/// The tests that failed, by their names. `None` if the program did not end by reporting failed tests: it crashed, after
/// the report too, was killed, or has other output.
pub fn failed_tests(printed: &str, code: Option<i32>) -> Option<Vec<String>> {
    if code != Some(FAILED) {
        return None;
    }
    let (before, result) = printed.rsplit_once("\ntest result: FAILED. ")?;
    let count: usize = result.split_once(" passed; ")?.1.split_once(" failed; ")?.0.parse().ok()?;
    let (_, names) = before.rsplit_once("\nfailures:\n")?;
    let names: Vec<String> = names.lines().filter_map(|line| line.strip_prefix("    ")).map(str::to_owned).collect();
    (!names.is_empty() && names.len() == count).then_some(names)
}

/// Whether the program ran exactly one test, which passed.
pub fn one_test_passed(printed: &str) -> bool {
    printed.contains("\ntest result: ok. 1 passed; 0 failed; 0 ignored; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "
running 3 tests
test a::one ... ok
test a::two ... FAILED
test three - should panic ... FAILED

failures:

---- a::two stdout ----
    left: 1

failures:
    a::two
    three

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s

";

    #[test]
    fn failed_tests_are_named() {
        assert_eq!(failed_tests(REPORT, Some(FAILED)).unwrap(), ["a::two", "three"]);
    }

    #[test]
    fn without_a_whole_report_no_test_is_named() {
        let crashed = REPORT.split_once("\nfailures:\n    ").unwrap().0;
        assert_eq!(failed_tests(crashed, Some(FAILED)), None);
        assert_eq!(failed_tests(&REPORT.replace("2 failed", "3 failed"), Some(FAILED)), None);
        assert_eq!(failed_tests("\ntest result: ok. 3 passed; 0 failed; 0 ignored; ", Some(FAILED)), None);
        // A signal, and another exit, after the report.
        assert_eq!(failed_tests(REPORT, None), None);
        assert_eq!(failed_tests(REPORT, Some(1)), None);
    }

    #[test]
    fn one_passed_test_is_not_none_and_not_two() {
        let ended = |counts: &str| format!("\nrunning\n\ntest result: ok. {counts}; 0 measured; 9 filtered out\n");
        assert!(one_test_passed(&ended("1 passed; 0 failed; 0 ignored")));
        for counts in
            ["0 passed; 0 failed; 0 ignored", "0 passed; 0 failed; 1 ignored", "2 passed; 0 failed; 0 ignored"]
        {
            assert!(!one_test_passed(&ended(counts)), "{counts}");
        }
    }
}
