//! How large the adapters of a model are, and what all of them have in common.

use super::module::Module;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How large the adapter of a module is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Size {
    pub(crate) rank: i64,
    pub(crate) alpha: f64,
}

impl Size {
    /// What the product B·A is multiplied by.
    pub(super) fn scale(self, rslora: bool) -> f64 {
        let rank = self.rank as f64;
        self.alpha / if rslora { rank.sqrt() } else { rank }
    }
}

/// The sizes of a model's adapters, by layer and module.
pub(crate) type Sizes = BTreeMap<(usize, Module), Size>;

/// What all adapters of a model have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Adapted {
    /// The folder of the weights that they stand beside.
    pub(crate) base: PathBuf,
    /// Whether they are scaled by `alpha / sqrt(rank)` (Kalajdzievski,
    /// arXiv:2312.03732) and not by `alpha / rank`.
    pub(crate) rslora: bool,
}
