//! Rows of Python as samples.

use crate::value::{PythonValue, type_name};
use gavel_data::{Columns, Json, Row, Sample};
use gavel_scoring::completion;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyString};

/// The sample of a row, which is a dict of columns; `position` is its number among the rows.
///
/// # Errors
/// The outer error: it is no dict whose keys are strings. The inner error: its columns are not a completion.
pub fn sample(row: &Bound<'_, PyAny>, position: usize) -> PyResult<Result<Sample, String>> {
    let place = format!("row {position}");
    Ok(match columns(row, &place)? {
        Ok(columns) => completed(columns, position),
        Err(what) => Err(format!("{place}: {what}")),
    })
}

/// The sample of a row with these columns, which is at `position`.
///
/// # Errors
/// The columns are not a completion.
pub fn completed(columns: Columns, position: usize) -> Result<Sample, String> {
    let place = format!("row {position}");
    let row = Row { position, place: place.clone(), columns };
    completion(row, "data").map_err(|error| format!("{place}: {error}"))
}

/// The columns of a row; the inner error names a column that is not JSON.
fn columns(row: &Bound<'_, PyAny>, place: &str) -> PyResult<Result<Columns, String>> {
    let Ok(mapping) = row.cast::<PyMapping>() else {
        return Err(PyTypeError::new_err(format!("{place} is of type {}, not a dict of columns", type_name(row))));
    };
    let mut columns = Columns::default();
    for item in mapping.items()? {
        let (name, value) = item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
        let Ok(name) = name.cast::<PyString>() else {
            let what = format!("{place} has a column whose name is of type {}, not str", type_name(&name));
            return Err(PyTypeError::new_err(what));
        };
        let name = name.to_cow()?;
        match Json::of(&PythonValue::new(&value)) {
            Ok(json) => columns.insert(&*name, json),
            Err(error) => return Ok(Err(format!("column `{name}`: {error}"))),
        }
    }
    Ok(Ok(columns))
}
