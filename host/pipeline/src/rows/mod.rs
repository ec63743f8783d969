//! The rows of datasets as what a run asks or learns: prompts, conversations, the order in which they come.

mod dataset;
mod learned_turn;
mod mixture;
mod prompts;
mod sft_rows;
mod task_stream;

pub(crate) use dataset::{DatasetRows, dataset_rows};
pub(crate) use learned_turn::LearnedTurn;
pub(crate) use prompts::{Drawable, Prompt, PromptLimit, prompt, prompts, task, template_kwargs, tools, usable};
pub(crate) use sft_rows::{Parted, PlacedRow, apply_limit, sft_rows, sft_rows_of};
pub(crate) use task_stream::{Numbering, Seeds, TaskStream, validation_seeds};
