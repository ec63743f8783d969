//! A run: opened or resumed, validated, recorded, checkpointed and ended. `gavel train`, `gavel sft` and learning from
//! pairs share it.

mod check;
mod control;
pub(crate) mod critic;
mod experience;
mod lifecycle;
mod planned;
mod policy;
mod probe;
mod published;
mod rank_work;
mod recorder;
mod reference;
mod resume;
mod setup;
mod spending;
mod start;
mod summary;
pub(crate) mod token_measures;
mod trained;
mod try_advantage;
mod try_sampler;
mod updater;
pub(crate) mod validation;

pub use check::Check;
pub use control::Control;
pub(crate) use experience::{experience, loss_mask, note_drawing};
pub(crate) use lifecycle::{Run, RunShape};
pub(crate) use planned::select;
pub use planned::{Planned, PlannedGpu};
pub(crate) use policy::Policy;
pub(crate) use probe::{probe, sources, tasks, try_rewards, try_rewards_on};
pub(crate) use rank_work::RankWork;
pub(crate) use recorder::Recorder;
pub(crate) use resume::{Opening, components, find_run, open_folder};
pub(crate) use setup::{Setup, check_data_sources, scorer};
pub(crate) use spending::over_budget;
pub use start::Start;
pub use summary::{LongWait, Summary};
pub(crate) use token_measures::Measures;
pub(crate) use trained::Trained;
