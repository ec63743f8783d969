//! Recorded verdicts, given again: the same plugins must say the same
//! ([`verify`]), and others show what they would have changed
//! ([`what_if`]). [`versions`] compares two of a plugin without a recording.
//! None of them needs a model, a GPU or a network.

mod change;
mod compare;
mod error;
mod rerun;
mod rewards;
mod verify;
mod versions;
mod worst;

pub use change::{Change, PluginChange, WhatIf, what_if};
pub use compare::{Mismatch, mismatches};
pub use error::ReplayError;
pub use rerun::Selection;
pub use rewards::RewardChange;
pub use verify::{Difference, Verification, verify};
pub use versions::{Cost, Version, Versions, versions};
pub use worst::{Disagreement, Said};
