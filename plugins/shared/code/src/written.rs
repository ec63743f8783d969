//! Tests that are written as C: assertions over calls of the code.
//!
//! C has no part of memory that code cannot change. So a child gets the expressions alone, and answers with their
//! values. What they should be stays here, and is compared here.

use crate::c::assertion;
use crate::c::statements::{Part, parts};
use crate::c::text::{cleaned, tokens, written};
use crate::c::wanted::{Answer, Wanted, answering};
use crate::checks::Tests;
use crate::repeat::{Ran, run};
use crate::tester::Tester;
use crate::verdict::{Kind, Tally, Verdict, cut, failure};
use gavel_sdk::Failure;
use serde::Serialize;

#[derive(Serialize)]
struct Job<'a> {
    code: &'a str,
    test: &'a str,
}

impl Tester {
    /// The verdict of each case.
    ///
    /// # Errors
    /// The tests cannot be run, whatever the code is.
    pub(crate) fn compare(&self, code: &str, tests: &Tests) -> Result<Tally, Failure> {
        let setup =
            cleaned(&tests.setup).map_err(|what| Failure::invalid_input(format!("`test_setup_code`: {what}")))?;
        if !setup.trim().is_empty() {
            return Err(Failure::invalid_input("`test_setup_code` of C may only have lines with `#include`"));
        }
        let texts = tests.cases.iter().flatten().take(self.max_tests.get());
        let cases: Vec<Written> = texts
            .enumerate()
            .map(|(number, text)| Written::read(text).map_err(|what| format!("test {}: {what}", number + 1)))
            .collect::<Result<_, _>>()
            .map_err(Failure::invalid_input)?;
        let mut tally = Tally::new(cases.len());
        if code.trim().is_empty() {
            (0..cases.len()).for_each(|at| tally.add(at, Verdict::new(Kind::Error, "no code in the response")));
            return Ok(tally);
        }
        let outputs = run(self.language, cases.len(), |at, _| {
            // Any text can be written as JSON.
            self.job(serde_json::to_string(&Job { code, test: &cases[at].body }).unwrap_or_default(), "")
        });
        for (number, (case, ran)) in cases.iter().zip(outputs).enumerate() {
            let Ran { output, .. } = ran?;
            let verdict =
                failure(&output).unwrap_or_else(|| match case.compare(&String::from_utf8_lossy(&output.stdout)) {
                    Ok(()) => Verdict::new(Kind::Passed, ""),
                    Err(what) => Verdict::new(Kind::Wrong, cut(&what)),
                });
            tally.add(number, verdict);
        }
        Ok(tally)
    }
}

/// A case: what a child runs, and the values that it should answer.
#[derive(Debug, PartialEq)]
pub(crate) struct Written {
    /// Statements in which each assertion is an answer.
    pub(crate) body: String,
    wanted: Vec<Wanted>,
}

impl Written {
    /// Reads a case: statements with assertions among them, or a `main` that has them.
    ///
    /// # Errors
    /// An assertion that cannot be compared outside of the child, or none.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let text = cleaned(text)?;
        let tokens = tokens(&text)?;
        let (mut body, mut wanted) = (String::new(), Vec::new());
        for part in parts(&tokens)? {
            match part {
                Part::Statements(statements) => body.push_str(written(&text, statements)),
                Part::Assertion(assertion) => {
                    let (expressions, values): (Vec<_>, Vec<_>) =
                        assertion::read(&text, assertion)?.into_iter().unzip();
                    let answers: Vec<String> = expressions.iter().map(|each| answering(each)).collect();
                    body.push_str(&format!("\n{{ {} }}\n", answers.join(" ")));
                    wanted.extend(values);
                }
            }
        }
        if wanted.is_empty() {
            return Err("there is no `assert`: any code would pass".into());
        }
        Ok(Self { body, wanted })
    }

    /// Whether the lines of a child are the values, each with its type; else the first one that is not.
    pub(crate) fn compare(&self, stdout: &str) -> Result<(), String> {
        let mut lines = stdout.lines();
        for wanted in &self.wanted {
            let (Some(value), Some(of)) = (lines.next(), lines.next()) else {
                return Err(format!("there is no value for {wanted}"));
            };
            let answer = Answer::read(value, of).ok_or_else(|| format!("expected {wanted}, not {value}"))?;
            if !wanted.is(&answer) {
                return Err(format!("expected {wanted}, not {answer}"));
            }
        }
        match lines.next() {
            None => Ok(()),
            Some(_) => Err("there are more values than assertions".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(text: &str) -> String {
        Written::read(text).unwrap().body
    }

    #[test]
    fn the_child_gets_expressions_alone() {
        let text = "#include <assert.h>\n// it's a test\nint main() {\n  int a[] = {1, 2};\n  \
                    assert(f(a, 2) == 4242 && a[0] == 1); // a's\n  assert(!strcmp(g(), \"4242\"));\n  return 0;\n}\n";
        let answers = |expressions: &[&str]| {
            let all: Vec<String> = expressions.iter().map(|each| answering(each)).collect();
            format!("\n{{ {} }}\n", all.join(" "))
        };
        assert_eq!(body(text), format!("int a[] = {{1, 2}};{}{}", answers(&["f(a, 2)", "a[0]"]), answers(&["g()"])));
        assert!(!body(text).contains("4242"));
        assert_eq!(body("// assert(f(9) == 9);\nassert(f(1) == 1);"), answers(&["f(1)"]));
        let all = "assert(f(1) == 1); // it's\nassert(f(2) == 2); // that's all\n";
        assert_eq!(body(all), answers(&["f(1)"]) + &answers(&["f(2)"]));
    }

    #[test]
    fn answers_are_lines_in_pairs() {
        let case = Written::read("assert(f(1) == 3); assert(g(1));").unwrap();
        assert_eq!(case.compare("3\n0\ntrue\n1\n"), Ok(()));
        for (stdout, what) in [
            ("", "no value for 3"),
            ("3\n", "no value for 3"),
            ("3\n0\n", "no value for true"),
            ("3\n0\ntrue\n1\n1\n", "more values"),
            ("4\n0\ntrue\n1\n", "expected 3, not 4"),
            ("3\n0\nfalse\n1\n", "expected true, not false"),
            ("3\nx\ntrue\n1\n", "expected 3, not 3"),
            ("x\n0\ntrue\n1\n", "expected 3, not x"),
        ] {
            assert!(case.compare(stdout).unwrap_err().contains(what), "{stdout:?}");
        }
    }

    #[test]
    fn a_fault_of_a_test_is_named() {
        for (text, what) in [
            ("int x = f(1);", "no `assert`"),
            ("// assert(f(1));", "no `assert`"),
            ("for (;;) { assert(f(1) == 1); }", "in a loop"),
            ("assert(f(1) == g(1));", "cannot be compared"),
            ("#define N 5\nassert(f(1) == N);", "`#define N 5`"),
            ("assert(f(1) == 5", "is missing"),
        ] {
            let error = Written::read(text).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
