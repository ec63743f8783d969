//! Recorded verdicts, given again: the same plugins must say the same
//! ([`verify`]), and others show what they would have changed
//! ([`what_if`]). Neither needs a model, a GPU or a network.

mod change;
mod compare;
mod error;
mod rerun;
mod rewards;
mod verify;
mod worst;

pub use change::{Change, PluginChange, WhatIf, what_if};
pub use error::ReplayError;
pub use rerun::Selection;
pub use rewards::RewardChange;
pub use verify::{Difference, Verification, verify};
pub use worst::{Disagreement, Said};
