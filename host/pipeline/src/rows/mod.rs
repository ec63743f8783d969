//! The rows of datasets as what a run asks or learns: prompts, conversations, the order in which they come.

mod dataset;
mod drawable;
mod learned_turn;
mod mixture;
mod prompts;
mod sft_rows;
mod stored_rows;
mod task_stream;

pub(crate) use dataset::{DatasetRows, dataset_rows};
pub(crate) use drawable::{Drawable, UsableDataset, shares, usable};
pub(crate) use learned_turn::LearnedTurn;
pub(crate) use prompts::{NoTokens, Prompt, PromptLimit, Prompts, prompt, prompts, task, template_kwargs, tools};
pub(crate) use sft_rows::{Parted, PlacedRow, SftRows, apply_limit, sft_rows, sft_rows_of};
pub(crate) use stored_rows::{StoredRow, StoredRows};
pub(crate) use task_stream::{Numbering, Seeds, TaskStream, validation_seeds};
