//! Tables for people.

use crate::terminal::outln;
use gavel_data::Shown;

/// Characters of a cell.
const CELL: usize = 40;

/// The beginning of a text, in one line.
pub fn cut(text: &str) -> String {
    let line = Shown(text).to_string();
    match line.char_indices().nth(CELL) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Prints a table with columns as wide as their widest cell.
pub fn print<const N: usize>(header: [&str; N], rows: impl Iterator<Item = [String; N]>) {
    let rows = std::iter::once(header.map(str::to_owned)).chain(rows);
    let rows: Vec<[String; N]> = rows.map(|row| row.map(|cell| Shown(cell).to_string())).collect();
    let widths: [usize; N] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    for row in rows {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        outln!("  {}", cells.join("  ").trim_end());
    }
}
