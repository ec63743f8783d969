//! What differs between the commands that learn from pairs.

use super::pair_row::{PairRow, RowPlace};
use crate::commands::ShownText;
use crate::error::Result;
use crate::rows::{DatasetRows, Drawable, Parted, StoredRow};
use crate::run::Setup;
use gavel_config::{LearningConfig, TrainTable};
use gavel_data::Row;
use gavel_policy::Model;
use gavel_text::TextModel;
use gavel_train::{PairStats, TrainError, Trainer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;

/// The `[train]` table of a command that learns from pairs.
pub(super) trait PairMethod: TrainTable + Serialize + DeserializeOwned + Clone + Sync {
    /// A pair as token ids.
    type Pair: StoredRow<Context = ()>;
    /// Whether the policy is compared with the policy that the run starts from.
    const NEEDS_REFERENCE: bool;

    /// How weights are learned in a run over `pairs` pairs.
    fn learning(&self, pairs: usize) -> LearningConfig;

    /// Pairs in each step.
    fn batch_size(&self) -> usize;

    /// The pair of a row; nothing if the row is left out. Notes in `parted` what of a prompt is not read.
    fn pair(setup: &Setup, row: PairRow, at: &RowPlace<'_>, parted: &Parted) -> Result<Option<Self::Pair>>;

    /// Both sides of a pair with their names, as text.
    fn shown(pair: &Self::Pair, text: &TextModel) -> Result<Vec<ShownText>>;

    /// The pair of a row of a dataset; nothing if the row is left out.
    fn of_row(setup: &Setup, row: Row, path: &Path, parted: &Parted) -> Result<Option<Self::Pair>> {
        let at = RowPlace { path, place: row.place.clone() };
        let row = PairRow::read(row).map_err(|what| at.bad_row(what))?;
        Self::pair(setup, row, &at, parted)
    }

    /// The pairs of these rows. Calls `note` with each of them.
    fn pairs<'d>(
        setup: &Setup,
        rows: impl Iterator<Item = Result<DatasetRows<'d>>>,
        note: impl FnMut(&Self::Pair),
    ) -> Result<Drawable<Self::Pair>> {
        let parted = Parted::default();
        let pairs = Drawable::read(rows, |row, path| Self::of_row(setup, row, path, &parted), note)?;
        parted.warn();
        Ok(pairs)
    }

    /// How many tokens both sides of a pair have in common at their beginning, and how many the longer side has after
    /// these.
    fn lengths(pair: &Self::Pair) -> (usize, usize);

    /// The tokens that both sides begin with, and how many tokens both sides together have after these.
    fn row(pair: &Self::Pair) -> (&[u32], usize);

    /// Takes an optimiser step over the pairs of all ranks. `pairs` are the pairs of this rank.
    fn step(
        &self,
        trainer: &mut Trainer,
        models: Models<'_>,
        pairs: &[Self::Pair],
        learning_rate: f64,
    ) -> std::result::Result<PairStats, TrainError>;

    /// Measures the held-out pairs of all ranks. `pairs` are the pairs of this rank.
    fn measure(
        &self,
        trainer: &Trainer,
        models: Models<'_>,
        pairs: &[Self::Pair],
    ) -> std::result::Result<PairStats, TrainError>;
}

/// The model that learns, and the model that it is compared with.
#[derive(Clone, Copy)]
pub(super) struct Models<'a> {
    pub(super) model: &'a Model,
    pub(super) reference: Option<&'a Model>,
}
