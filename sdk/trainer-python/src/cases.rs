//! The golden cases of a component, which pytest runs one by one.

use crate::error::GavelError;
use crate::interruptible::wait_for;
use gavel::plugin::subject::Subject;
use gavel::report::with_causes;
use gavel_harness::CaseFile;
use gavel_project::use_environment;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A file of golden cases and the plugin that they are for.
#[pyclass(frozen, module = "gavel_rl._native")]
pub struct GoldenCases(Arc<Cases>);

struct Cases {
    subject: Subject,
    file: CaseFile,
    /// Whether the plugin's folder is built, or why it cannot be.
    built: OnceLock<Result<(), String>>,
}

impl Cases {
    /// What a failure of the case shows; `None` if it passed.
    fn run(&self, index: usize) -> Result<Option<String>, String> {
        self.built.get_or_init(|| self.subject.build().map_err(|error| with_causes(&error))).clone()?;
        let result = self.subject.test_one(&self.file, index).map_err(|error| with_causes(&error))?;
        Ok(result.filter(|result| !result.passed()).map(|result| result.report(self.file.path())))
    }
}

#[pymethods]
impl GoldenCases {
    /// Reads the cases of a plugin: the folder of its sources, or its component. `params` are JSON.
    #[new]
    fn new(plugin: PathBuf, cases: Option<PathBuf>, params: Option<&str>, environment: PathBuf) -> PyResult<Self> {
        use_environment(environment);
        let open = || {
            let mut subject = Subject::open(&plugin, params)?;
            subject.cases = cases.or(subject.cases);
            let file = subject.file()?;
            Ok(Cases { subject, file, built: OnceLock::new() })
        };
        open().map(|cases| Self(Arc::new(cases))).map_err(|error| GavelError::new_err(with_causes(&error)))
    }

    /// The file.
    #[getter]
    fn path(&self) -> &Path {
        self.0.file.path()
    }

    /// The name and the line of each case.
    fn names(&self) -> Vec<(&str, usize)> {
        self.0.file.cases().iter().map(|case| (&*case.name, case.line.get())).collect()
    }

    /// Runs a case, after a build where the plugin needs one. Returns what a failure shows, None if it passed.
    fn run(&self, py: Python<'_>, index: usize) -> PyResult<Option<String>> {
        if index >= self.0.file.cases().len() {
            return Err(PyIndexError::new_err("there is no such case"));
        }
        let cases = self.0.clone();
        let panicked = "the case cannot be run: the thread that runs it panicked";
        wait_for(py, panicked, move || cases.run(index))?.map_err(GavelError::new_err)
    }
}
