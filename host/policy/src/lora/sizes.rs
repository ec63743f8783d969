//! The sizes of a model's adapters, and the settings that all of them share.

use super::module::Module;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The size of a module's adapter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Size {
    pub(crate) rank: i64,
    pub(crate) alpha: f64,
}

impl Size {
    /// The factor of the product B·A.
    pub(super) fn scale(self, rslora: bool) -> f64 {
        let rank = self.rank as f64;
        self.alpha / if rslora { rank.sqrt() } else { rank }
    }
}

/// The sizes of a model's adapters, by layer and module.
pub(crate) type Sizes = BTreeMap<(usize, Module), Size>;

/// The settings that all adapters of a model share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Adapted {
    /// The folder of the base's weights.
    pub(crate) base: PathBuf,
    /// Whether they are scaled by `alpha / sqrt(rank)` (Kalajdzievski,
    /// arXiv:2312.03732) and not by `alpha / rank`.
    pub(crate) rslora: bool,
}
