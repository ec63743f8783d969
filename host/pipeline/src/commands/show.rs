//! `--show`: rows as a model reads them, with what is learned of them.

use crate::error::{PipelineError, Result};
use crate::ranks::Ranks;
use crate::rows::{DatasetRows, Parted, dataset_rows, prompt, sft_rows_of};
use crate::run::Setup;
use gavel_config::{Config, Datasets, RlTable, SftTable};
use gavel_data::{DatasetRow, Row};
use gavel_scoring::recording::KeptComponents;
use gavel_text::TextModel;
use std::num::NonZeroUsize;
use std::path::Path;

/// A row of a dataset as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownRow {
    /// Its file and its place there.
    pub place: String,
    /// The texts that are made of it.
    pub texts: Vec<ShownText>,
}

/// A text that a model reads, in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownText {
    /// Which text of its row it is, if the row has several.
    pub name: Option<String>,
    /// Its parts in order, each other than its neighbours in whether it is learned.
    pub parts: Vec<ShownPart>,
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownPart {
    /// The text of its tokens, special tokens included.
    pub text: String,
    /// How many tokens it has.
    pub tokens: usize,
    /// Whether the model learns to write it.
    pub is_learned: bool,
}

impl ShownText {
    /// A text of which nothing is learned.
    pub(crate) fn read(name: Option<String>, ids: &[u32], text: &TextModel) -> Result<Self> {
        let part = ShownPart { text: text.tokenizer.decode_with(ids, false)?, tokens: ids.len(), is_learned: false };
        Ok(Self { name, parts: vec![part] })
    }

    /// A prompt and what is learned after it.
    pub(crate) fn learned(name: Option<String>, prompt: &[u32], response: &[u32], text: &TextModel) -> Result<Self> {
        let mut shown = Self::read(name, prompt, text)?;
        // Some tokenizers decode the beginning of a text differently.
        let whole = text.tokenizer.decode_with(&[prompt, response].concat(), false)?;
        let after = shown.parts.iter().find_map(|before| whole.strip_prefix(before.text.as_str()));
        let learned = match after {
            Some(after) => after.to_owned(),
            None => text.tokenizer.decode_with(response, false)?,
        };
        shown.parts.push(ShownPart { text: learned, tokens: response.len(), is_learned: true });
        Ok(shown)
    }
}

/// The first `count` rows that `gavel sft` learns, each with its answers.
///
/// # Errors
/// Anything that the configuration names cannot be used.
pub fn show_sft(config: &Config<SftTable>, count: NonZeroUsize) -> Result<Vec<ShownRow>> {
    let setup = Setup::new(config, &KeptComponents::default(), &Ranks::alone())?;
    let (text, limit, turns, parted) = (&setup.text, setup.limit, config.train.turns, Parted::default());
    let shown = first(config, &config.data.train, &setup, count, |row, path| {
        let rows = sft_rows_of(row, path, text, limit, &setup.episode_kinds, turns, &parted)?;
        let several = rows.len() > 1;
        let name = |number: usize| several.then(|| format!("answer {number} of {}", rows.len()));
        let shown =
            (1..).zip(&rows).map(|(number, row)| ShownText::learned(name(number), &row.prompt, &row.response, text));
        shown.collect()
    })?;
    parted.warn();
    Ok(shown)
}

/// The first `count` prompts of `gavel train`. After each, the policy's response is learned.
///
/// # Errors
/// Anything that the configuration names cannot be used.
pub fn show_train(config: &Config<RlTable>, count: NonZeroUsize) -> Result<Vec<ShownRow>> {
    let setup = Setup::new(config, &KeptComponents::default(), &Ranks::alone())?;
    first(config, &config.data.train, &setup, count, |row, path| {
        let prompt = prompt(row, path, "train", &setup.text, setup.limit, &setup.episode_kinds)?;
        prompt.iter().map(|prompt| ShownText::learned(None, &prompt.ids, &[], &setup.text)).collect()
    })
}

/// What `show` makes of the first `count` rows of which it makes something.
pub(crate) fn first<T>(
    config: &Config<T>,
    datasets: &Datasets,
    setup: &Setup,
    count: NonZeroUsize,
    show: impl Fn(Row, &Path) -> Result<Vec<ShownText>>,
) -> Result<Vec<ShownRow>> {
    let mut shown = Vec::new();
    for rows in dataset_rows(config, datasets, setup.scorer.sandbox()) {
        let DatasetRows { rows, .. } = rows?;
        for row in rows {
            let DatasetRow { path, row } = row?;
            let place = format!("{}, {}", path.display(), row.place);
            let texts = show(row, &path)?;
            if !texts.is_empty() {
                shown.push(ShownRow { place, texts });
            }
            if shown.len() == count.get() {
                return Ok(shown);
            }
        }
    }
    match shown.is_empty() {
        true => Err(PipelineError::Stopped(format!("dataset {datasets} has no row that can be used"))),
        false => Ok(shown),
    }
}
