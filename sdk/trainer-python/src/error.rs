//! Errors as exceptions of Python.

use gavel_scoring::ScorerError;
use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::PyException;

create_exception!(gavel_rl, GavelError, PyException, "A reward cannot be loaded, or a scorer cannot be used.");

/// The exception for rewards that do not load, with the message of the command `gavel`.
pub fn not_loaded(error: &ScorerError) -> PyErr {
    GavelError::new_err(error.to_string())
}

/// The exception for a scorer that cannot be used.
pub fn unusable(message: &'static str) -> PyErr {
    GavelError::new_err(message)
}
