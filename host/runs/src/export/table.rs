//! The columns and the rows of a table.

use gavel_data::files::WholeFile;
use std::io::{self, BufWriter, IntoInnerError};

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
}

impl Column {
    pub(super) fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self { name: name.into(), kind }
    }
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Count,
    Number,
    Text,
}

/// A value of a column's type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Absent,
    Count(u64),
    Number(f64),
    Text(String),
}

impl From<Option<u64>> for Cell {
    fn from(count: Option<u64>) -> Self {
        count.map_or(Self::Absent, Self::Count)
    }
}

impl From<Option<f64>> for Cell {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Self::Absent, Self::Number)
    }
}

impl From<Option<String>> for Cell {
    fn from(text: Option<String>) -> Self {
        text.map_or(Self::Absent, Self::Text)
    }
}

/// A table that is being written.
pub(super) trait Rows {
    /// Adds a row with a cell for each column.
    fn add(&mut self, cells: Vec<Cell>) -> io::Result<()>;

    /// Gives the file its name.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Gives a file its name, once everything is written.
pub(super) fn finish(out: BufWriter<WholeFile>) -> io::Result<()> {
    out.into_inner().map_err(IntoInnerError::into_error)?.finish()
}
