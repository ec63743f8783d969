//! Tests that are written as Python: MBPP's list of assertions, HumanEval's
//! `check`, and functions of pytest, as in KodCode.

use gavel_sdk::{Failure, Reference};
use serde::Deserialize;
use serde_json::Value;

/// The tests of a row.
#[derive(Debug, PartialEq)]
pub(crate) struct Tests {
    /// Code that runs before each case.
    pub(crate) setup: String,
    /// Python code, a case each; without it, the functions `test_…` of `setup`.
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
    entry_point: Option<String>,
}

impl Tests {
    /// The tests of a ground truth; `None` if it has another form.
    ///
    /// # Errors
    /// The mistake in them.
    pub(crate) fn of_truth(truth: &str) -> Result<Option<Self>, String> {
        match serde_json::from_str::<Value>(truth) {
            Ok(Value::Object(fields)) if fields.contains_key("test_list") || fields.contains_key("test") => {
                let written = serde_json::from_value(Value::Object(fields));
                written.map_err(|error| format!("the tests of the ground truth: {error}")).and_then(Self::read)
            }
            Ok(Value::Array(asserts)) => {
                let asserts = asserts.into_iter().map(|each| each.as_str().map(str::to_owned)).collect::<Option<_>>();
                match asserts {
                    Some(test_list) => Self::read(Written { test_list: Some(test_list), ..Written::default() }),
                    None => Ok(None),
                }
            }
            Ok(_) => Ok(None),
            Err(_) if truth.contains("def test") => {
                Self::read(Written { test: Some(truth.to_owned()), ..Written::default() })
            }
            Err(_) if truth.lines().any(|line| line.starts_with("assert ")) => {
                Self::read(Written { test_list: Some(vec![truth.to_owned()]), ..Written::default() })
            }
            Err(_) => Ok(None),
        }
    }

    /// The tests of a row's columns, which have the names of the datasets.
    pub(crate) fn of_columns(reference: &Reference) -> Result<Option<Self>, Failure> {
        let written = Written {
            test_list: reference.get("test_list")?,
            test_setup_code: reference.get("test_setup_code")?,
            test_imports: reference.get("test_imports")?,
            test: reference.get("test")?,
            entry_point: reference.get("entry_point")?,
        };
        Self::read(written).map_err(Failure::invalid_input)
    }

    fn read(written: Written) -> Result<Option<Self>, String> {
        let Written { test_list, test_setup_code, test_imports, test, entry_point } = written;
        let tests = match (test_list, test, entry_point) {
            (Some(cases), ..) => {
                let imports = test_imports.unwrap_or_default().into_iter();
                let setup = imports.chain(test_setup_code).collect::<Vec<_>>().join("\n");
                Self { setup, cases: Some(cases) }
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_dataset_has_its_form() {
        let mbpp = r#"{"test_list": ["assert f(1) == 2"], "test_setup_code": "x = 1", "test_imports": ["import math"], "challenge_test_list": []}"#;
        let found = Tests::of_truth(mbpp).unwrap().unwrap();
        assert_eq!((found.setup.as_str(), found.cases), ("import math\nx = 1", Some(vec!["assert f(1) == 2".into()])));
        let found = Tests::of_truth(r#"{"test": "def check(candidate): ...", "entry_point": "f"}"#).unwrap().unwrap();
        assert_eq!(found.cases, Some(vec!["check(f)".into()]));
        let pytest = "from solution import f\n\ndef test_f():\n    assert f(1) == 2\n";
        assert_eq!(Tests::of_truth(pytest), Ok(Some(Tests { setup: pytest.into(), cases: None })));
        let found = Tests::of_truth(r#"["assert f(1) == 2", "assert f(2) == 3"]"#).unwrap().unwrap();
        assert_eq!(found.cases.map(|cases| cases.len()), Some(2));
        assert_eq!(
            Tests::of_truth("x = f(1)\nassert x == 2").unwrap().unwrap().cases.map(|cases| cases.len()),
            Some(1)
        );
    }

    #[test]
    fn other_forms_are_not_meant_and_broken_ones_are_named() {
        for truth in ["72", r#"{"inputs": ["1"], "outputs": ["1"]}"#, "[1, 2]", "no test"] {
            assert_eq!(Tests::of_truth(truth), Ok(None), "{truth}");
        }
        assert!(Tests::of_truth("[]").unwrap_err().contains("any code would pass"));
        assert!(Tests::of_truth(r#"{"test": "x"}"#).unwrap_err().contains("entry_point"));
        assert!(Tests::of_truth(r#"{"test_list": "assert"}"#).unwrap_err().contains("the tests of the ground truth"));
    }
}
