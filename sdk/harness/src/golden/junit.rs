//! Results in JUnit's format.

use super::run::{CaseResult, CaseResults};
use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};
use std::time::Duration;

impl CaseResults {
    /// The results as a JUnit report, which CI systems read. The time of a case
    /// is its processor time; its fuel and memory are properties.
    ///
    /// # Errors
    /// The report cannot be written as XML.
    pub fn junit(&self) -> Result<String, SerializeError> {
        let mut suite = TestSuite::new(self.plugin.clone());
        suite.add_test_cases(self.cases.iter().map(|case| self.test_case(case)));
        let calls = self.cases.iter().filter(|result| !self.judged || !result.case.is_later_of_group());
        suite.set_time(calls.map(time).sum());
        let mut report = Report::new("gavel plugin test");
        report.add_test_suite(suite);
        // Of the characters that XML does not have, the writer leaves these two.
        Ok(report.to_string()?.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}"))
    }

    fn test_case(&self, result: &CaseResult) -> TestCase {
        let status = if result.passed() {
            TestCaseStatus::success()
        } else {
            let said: Vec<String> = result.mismatches.iter().map(ToString::to_string).collect();
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(said.join("; ")).set_type("expectation").set_description(result.report(&self.path));
            status
        };
        let mut case = TestCase::new(result.case.name.clone(), status);
        case.set_classname(self.plugin.clone()).set_time(time(result));
        case.add_property(("peak_memory", result.usage().peak_memory.to_string().as_str()));
        if let Some(fuel) = result.usage().fuel {
            case.add_property(("fuel", fuel.to_string().as_str()));
        }
        if let Some(diagnosis) = result.diagnosis() {
            case.set_system_out(diagnosis.stderr.clone());
        }
        case
    }
}

fn time(result: &CaseResult) -> Duration {
    Duration::from_micros(result.usage().cpu_us)
}
