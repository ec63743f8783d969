//! Measuring batch after batch.

use anyhow::Result;
use gavel::terminal;
use serde::Serialize;

/// Measures each batch, and prints a table of all results; with `json`, prints each in a line as soon as it is known.
pub(super) fn each_batch<T: Serialize>(
    batches: &[usize],
    json: bool,
    measure: impl Fn(usize) -> Result<T>,
    print_table: impl Fn(&[T]),
) -> Result<()> {
    let mut all = Vec::new();
    for &batch in batches {
        let measured = measure(batch)?;
        if json {
            terminal::json(&measured)?;
        }
        all.push(measured);
    }
    if !json {
        print_table(&all);
    }
    Ok(())
}

/// The median; of two in the middle, the higher one.
pub(super) fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_unstable_by(f64::total_cmp);
    seconds.get(seconds.len() / 2).copied().unwrap_or(f64::NAN)
}
