//! Reinforcement learning: groups are drawn and scored while the policy learns from those before.

mod advantages;
mod broken_judges;
mod credit;
mod drawn_rows;
mod group_queue;
mod learning_state;
mod ledger;
mod measured_rules;
mod pace;
mod placed_credit;
mod plugin_advantages;
mod sampler;
mod step;
mod task_source;
mod teacher;
mod train;
mod turns;
mod unlearned;

pub(crate) use teacher::Teacher;
pub use train::train;
