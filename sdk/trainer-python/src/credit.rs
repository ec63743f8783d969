//! Credit for a part of a sample.

use pyo3::prelude::*;

/// Credit for a part of a response: the bytes `start` to `end` of the text of one message of one trajectory.
#[pyclass(frozen, eq, get_all, module = "gavel_rl")]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Credit {
    /// The number of the trajectory.
    trajectory: u32,
    /// The number of the message after the prompt.
    message: u32,
    /// The first byte.
    start: u32,
    /// The byte after the last.
    end: u32,
    /// The credit.
    value: f64,
}

impl From<&gavel_data::Credit> for Credit {
    fn from(credit: &gavel_data::Credit) -> Self {
        let gavel_data::Credit { trajectory, message, start, end, value } = *credit;
        Self { trajectory, message, start, end, value }
    }
}

#[pymethods]
impl Credit {
    fn __repr__(&self) -> String {
        let Self { trajectory, message, start, end, value } = self;
        format!("Credit(trajectory={trajectory}, message={message}, start={start}, end={end}, value={value:?})")
    }
}
