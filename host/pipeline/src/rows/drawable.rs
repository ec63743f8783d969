//! What a run draws from.

use super::dataset::DatasetRows;
use super::mixture::Share;
use super::stored_rows::{MOST_IN_MEMORY, StoredRow, StoredRows};
use crate::error::{PipelineError, Result};
use gavel_data::{DatasetRow, Row};
use std::path::Path;

/// What a run draws from: the rows that can be used, dataset after dataset.
pub(crate) struct Drawable<R: StoredRow> {
    pub(crate) rows: StoredRows<R>,
    /// The parts of them, as [`shares`] gives them.
    pub(crate) shares: Vec<Share>,
}

impl<R: StoredRow<Context = ()>> Drawable<R> {
    /// What `read` makes of each row; for a row that is left out, it returns nothing. Calls `note` with each of them.
    pub(crate) fn read<'d, I: IntoIterator<Item = R>>(
        datasets: impl IntoIterator<Item = Result<DatasetRows<'d>>>,
        read: impl Fn(Row, &Path) -> Result<I>,
        mut note: impl FnMut(&R),
    ) -> Result<Self> {
        let mut rows = StoredRows::within(MOST_IN_MEMORY, ());
        let datasets = usable(datasets, read, |row| {
            note(&row);
            rows.push(row)
        })?;
        Ok(Self { rows: rows.finish(), shares: shares(&datasets) })
    }
}

/// A dataset, of which some rows can be used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct UsableDataset {
    /// These rows, at least one.
    pub(crate) rows: usize,
    /// Its weight in the configuration.
    pub(crate) weight: Option<f64>,
}

impl From<&UsableDataset> for gavel_plugin::sampler::Dataset {
    fn from(&UsableDataset { rows, weight }: &UsableDataset) -> Self {
        Self { rows: rows as u64, weight }
    }
}

/// The parts of the rows of datasets with their weights: each dataset, or all rows as one where none has a weight.
pub(crate) fn shares(datasets: &[UsableDataset]) -> Vec<Share> {
    let weighted = datasets.iter().filter_map(|dataset| Some(Share { rows: dataset.rows, weight: dataset.weight? }));
    let mut shares: Vec<Share> = weighted.collect();
    if shares.is_empty() {
        shares.push(Share { rows: datasets.iter().map(|dataset| dataset.rows).sum(), weight: 1.0 });
    }
    shares
}

/// Gives `keep` what `read` makes of each row, one after another; for a row that is left out, `read` returns nothing.
/// Returns how many rows of each dataset were kept.
pub(crate) fn usable<'d, R, I: IntoIterator<Item = R>>(
    datasets: impl IntoIterator<Item = Result<DatasetRows<'d>>>,
    read: impl Fn(Row, &Path) -> Result<I>,
    mut keep: impl FnMut(R) -> Result<()>,
) -> Result<Vec<UsableDataset>> {
    let mut kept = Vec::new();
    for rows in datasets {
        let DatasetRows { dataset, weight, rows } = rows?;
        let mut count = 0;
        for row in rows {
            let DatasetRow { path, row } = row?;
            for made in read(row, &path)? {
                count += 1;
                keep(made)?;
            }
        }
        if count == 0 {
            return Err(PipelineError::Stopped(format!("dataset {dataset} has no row that can be used")));
        }
        kept.push(UsableDataset { rows: count, weight });
    }
    Ok(kept)
}
