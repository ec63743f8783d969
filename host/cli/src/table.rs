//! Tables on the terminal.

use crate::terminal::outln;
use gavel_data::Shown;

/// The most characters of a cell.
const CELL: usize = 40;

/// The beginning of a text, in one line.
pub fn cut(text: &str) -> String {
    cut_to(text, CELL)
}

/// The first characters of a text, in one line.
pub fn cut_to(text: &str, width: usize) -> String {
    let line = Shown(text).to_string();
    match line.char_indices().nth(width) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Prints a table with columns as wide as their widest cell.
pub fn print<const N: usize>(header: [&str; N], rows: impl Iterator<Item = [String; N]>) {
    print_rows(&header.map(str::to_owned), rows.map(Vec::from));
}

/// Prints a table with as many columns as `header` has.
pub fn print_rows(header: &[String], rows: impl Iterator<Item = Vec<String>>) {
    let rows = std::iter::once(header.to_vec()).chain(rows);
    let rows: Vec<Vec<String>> = rows.map(|row| row.iter().map(|cell| Shown(cell).to_string()).collect()).collect();
    let width = |column: usize| rows.iter().filter_map(|row| Some(row.get(column)?.chars().count())).max().unwrap_or(0);
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    for row in &rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        outln!("  {}", cells.join("  ").trim_end());
    }
}
