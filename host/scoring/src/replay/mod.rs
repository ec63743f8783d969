//! Replays recorded samples. The same plugins must give the same verdicts
//! ([`verify`]), and changed plugins show what they would have changed
//! ([`compare`]). [`versions`] compares two versions of a plugin without a
//! recording. A replay needs no model, no GPU and no network.

mod change;
mod comparison;
mod error;
mod mismatch;
mod recorded_groups;
mod recorded_verdicts;
mod replayed;
mod rerun;
mod rewards;
mod verify;
mod versions;
mod worst;

pub use change::{Change, compare};
pub use comparison::{Comparison, PluginChange};
pub use error::ReplayError;
pub use mismatch::{Mismatch, mismatches};
pub use recorded_verdicts::RecordedVerdicts;
pub use rerun::Selection;
pub use rewards::RewardChange;
pub use verify::{Difference, Verification, verify};
pub use versions::{Cost, Version, Versions, versions};
pub use worst::{Disagreement, VerdictSummary};
