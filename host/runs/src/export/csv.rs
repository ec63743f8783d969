//! CSV as RFC 4180 has it, with `\n` at the end of a row. A value that is absent has no characters, and an empty text is
//! `""`.

use super::table::{Cell, Column, Rows, finish};
use gavel_data::files::WholeFile;
use std::io::{self, BufWriter, Write};

pub(super) struct CsvTable(BufWriter<WholeFile>);

impl CsvTable {
    pub(super) fn create(out: BufWriter<WholeFile>, columns: &[Column]) -> io::Result<Self> {
        let mut table = Self(out);
        table.write(columns.iter().map(|column| Cell::Text(column.name.clone())))?;
        Ok(table)
    }

    fn write(&mut self, cells: impl Iterator<Item = Cell>) -> io::Result<()> {
        for (number, cell) in cells.enumerate() {
            if number > 0 {
                self.0.write_all(b",")?;
            }
            match cell {
                Cell::Absent => {}
                Cell::Count(count) => write!(self.0, "{count}")?,
                Cell::Number(number) => write!(self.0, "{number}")?,
                Cell::Text(text) if text.is_empty() || text.contains([',', '"', '\n', '\r']) => {
                    write!(self.0, "\"{}\"", text.replace('"', "\"\""))?;
                }
                Cell::Text(text) => self.0.write_all(text.as_bytes())?,
            }
        }
        self.0.write_all(b"\n")
    }
}

impl Rows for CsvTable {
    fn add(&mut self, cells: Vec<Cell>) -> io::Result<()> {
        self.write(cells.into_iter())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        finish(self.0)
    }
}
