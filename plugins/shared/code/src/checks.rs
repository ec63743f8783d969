//! Tests that are written as code: MBPP's list of assertions, HumanEval's
//! `check`, functions of pytest, as in KodCode, the assertions of MultiPL-E and
//! HumanEval-X in JavaScript, and assertions in C.

use crate::language::Language;
use gavel_sdk::{Failure, Reference};
use serde::Deserialize;
use serde_json::Value;

/// The tests of a row.
#[derive(Debug, PartialEq)]
pub(crate) struct Tests {
    /// Code that runs before each case.
    pub(crate) setup: String,
    /// Code, a case each; without it, the functions `test_…` of `setup`, which is
    /// Python then.
    pub(crate) cases: Option<Vec<String>>,
}

/// The fields have the names of the datasets.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Written {
    test_list: Option<Vec<String>>,
    test_setup_code: Option<String>,
    test_imports: Option<Vec<String>>,
    test: Option<String>,
    /// MultiPL-E's name of `test`.
    tests: Option<String>,
    entry_point: Option<String>,
}

impl Tests {
    /// The tests of a ground truth; `None` if it has another form.
    ///
    /// # Errors
    /// The mistake in them.
    pub(crate) fn of_truth(language: Language, truth: &str) -> Result<Option<Self>, String> {
        let read = |written| Self::read(language, written);
        match serde_json::from_str::<Value>(truth) {
            Ok(Value::Object(fields)) if names(language).iter().any(|name| fields.contains_key(*name)) => {
                let written = serde_json::from_value(Value::Object(fields));
                written.map_err(|error| format!("the tests of the ground truth: {error}")).and_then(read)
            }
            Ok(Value::Array(asserts)) => {
                let asserts = asserts.into_iter().map(|each| each.as_str().map(str::to_owned)).collect::<Option<_>>();
                match asserts {
                    Some(test_list) => read(Written { test_list: Some(test_list), ..Written::default() }),
                    None => Ok(None),
                }
            }
            Ok(_) => Ok(None),
            Err(_) if matches!(language, Language::JavaScript | Language::C) && truth.contains("assert") => {
                read(Written { test: Some(truth.to_owned()), ..Written::default() })
            }
            Err(_) if language == Language::Python && truth.contains("def test") => {
                read(Written { test: Some(truth.to_owned()), ..Written::default() })
            }
            Err(_) if language == Language::Python && truth.lines().any(|line| line.starts_with("assert ")) => {
                read(Written { test_list: Some(vec![truth.to_owned()]), ..Written::default() })
            }
            Err(_) => Ok(None),
        }
    }

    /// The tests of a row's columns, which have the names of the datasets.
    pub(crate) fn of_columns(language: Language, reference: &Reference) -> Result<Option<Self>, Failure> {
        let written = Written {
            tests: match names(language).contains(&"tests") {
                true => reference.get("tests")?,
                false => None,
            },
            test_list: reference.get("test_list")?,
            test_setup_code: reference.get("test_setup_code")?,
            test_imports: reference.get("test_imports")?,
            test: reference.get("test")?,
            entry_point: reference.get("entry_point")?,
        };
        Self::read(language, written).map_err(Failure::invalid_input)
    }

    fn read(language: Language, written: Written) -> Result<Option<Self>, String> {
        let Written { test_list, test_setup_code, test_imports, test, tests, entry_point } = written;
        let tests = match (test_list, test, entry_point) {
            (Some(cases), ..) => {
                let imports = test_imports.unwrap_or_default().into_iter();
                let setup = imports.chain(test_setup_code).collect::<Vec<_>>().join("\n");
                Self { setup, cases: Some(cases) }
            }
            (None, Some(test), _) if language == Language::C => Self { setup: String::new(), cases: Some(vec![test]) },
            (None, test, function) if language == Language::JavaScript => match (test.or(tests), function) {
                (Some(setup), Some(function)) if setup.contains("check") => {
                    Self { setup, cases: Some(vec![format!("check({function})")]) }
                }
                (Some(test), _) => Self { setup: String::new(), cases: Some(vec![test]) },
                (None, _) => return Ok(None),
            },
            (None, Some(setup), Some(function)) if !setup.contains("def test") => {
                Self { setup, cases: Some(vec![format!("check({function})")]) }
            }
            (None, Some(setup), _) if setup.contains("def test") => Self { setup, cases: None },
            (None, Some(_), _) => {
                return Err("`test` has no function `test_…`, and there is no `entry_point` for its `check`".into());
            }
            (None, None, _) => return Ok(None),
        };
        match &tests.cases {
            Some(cases) if cases.is_empty() => Err("there is no test: any code would pass".into()),
            _ => Ok(Some(tests)),
        }
    }
}

/// The fields that have tests.
fn names(language: Language) -> &'static [&'static str] {
    match language {
        Language::Python | Language::C => &["test_list", "test"],
        Language::JavaScript => &["test_list", "test", "tests"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_truth(truth: &str) -> Result<Option<Tests>, String> {
        Tests::of_truth(Language::Python, truth)
    }

    #[test]
    fn javascript_has_forms_of_its_own() {
        let read = |truth| Tests::of_truth(Language::JavaScript, truth).unwrap().unwrap();
        let case = |source: &str| Tests { setup: String::new(), cases: Some(vec![source.into()]) };
        assert_eq!(read(r#"{"tests": "assert.equal(f(1), 2)"}"#), case("assert.equal(f(1), 2)"));
        assert_eq!(read("assert.equal(f(1), 2);\n"), case("assert.equal(f(1), 2);\n"));
        assert_eq!(read(r#"{"test": "console.assert(f(1) === 2)"}"#), case("console.assert(f(1) === 2)"));
        let check = read(r#"{"test": "const check = (candidate) => {}", "entry_point": "f"}"#);
        assert_eq!(check.cases, Some(vec!["check(f)".into()]));
        let list = read(r#"{"test_list": ["assert(f(1))", "assert(f(2))"], "test_setup_code": "let x"}"#);
        assert_eq!((list.setup.as_str(), list.cases.map(|cases| cases.len())), ("let x", Some(2)));
        // Where it is not a field of tests, it is none.
        assert_eq!(of_truth(r#"{"tests": "assert.equal(f(1), 2)"}"#), Ok(None));
    }

    #[test]
    fn each_dataset_has_its_form() {
        let mbpp = r#"{"test_list": ["assert f(1) == 2"], "test_setup_code": "x = 1", "test_imports": ["import math"], "challenge_test_list": []}"#;
        let found = of_truth(mbpp).unwrap().unwrap();
        assert_eq!((found.setup.as_str(), found.cases), ("import math\nx = 1", Some(vec!["assert f(1) == 2".into()])));
        let found = of_truth(r#"{"test": "def check(candidate): ...", "entry_point": "f"}"#).unwrap().unwrap();
        assert_eq!(found.cases, Some(vec!["check(f)".into()]));
        let pytest = "from solution import f\n\ndef test_f():\n    assert f(1) == 2\n";
        assert_eq!(of_truth(pytest), Ok(Some(Tests { setup: pytest.into(), cases: None })));
        let found = of_truth(r#"["assert f(1) == 2", "assert f(2) == 3"]"#).unwrap().unwrap();
        assert_eq!(found.cases.map(|cases| cases.len()), Some(2));
        assert_eq!(of_truth("x = f(1)\nassert x == 2").unwrap().unwrap().cases.map(|cases| cases.len()), Some(1));
    }

    #[test]
    fn other_forms_are_not_meant_and_broken_ones_are_named() {
        for truth in ["72", r#"{"inputs": ["1"], "outputs": ["1"]}"#, "[1, 2]", "no test"] {
            assert_eq!(of_truth(truth), Ok(None), "{truth}");
        }
        assert!(of_truth("[]").unwrap_err().contains("any code would pass"));
        assert!(of_truth(r#"{"test": "x"}"#).unwrap_err().contains("entry_point"));
        assert!(of_truth(r#"{"test_list": "assert"}"#).unwrap_err().contains("the tests of the ground truth"));
    }
}
