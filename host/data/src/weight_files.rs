//! The files that hold the weights of a checkpoint in the layout of Hugging Face.

use crate::files::read_regular_text;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The file of all weights, where they are not in shards.
pub const WEIGHTS: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
/// The most bytes of an index: it has a line for each tensor.
const INDEX_BYTES: u64 = 256 << 20;

/// The files that hold the weights of a checkpoint, whether or not they exist: `model.safetensors`, or the shards in
/// `model.safetensors.index.json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightFiles {
    /// All of them.
    pub all: BTreeSet<PathBuf>,
    /// The file of each tensor according to the index; empty without an index.
    places: BTreeMap<String, PathBuf>,
    /// The only file, or the index.
    first: PathBuf,
}

/// An index that cannot be read as one.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum WeightFilesError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// Its content is wrong.
    #[error("{}: {what}", path.display())]
    Wrong { path: PathBuf, what: String },
}

impl WeightFiles {
    /// The files of the checkpoint in the folder `dir`.
    ///
    /// # Errors
    /// The index cannot be read as one.
    pub fn find(dir: &Path) -> Result<Self, WeightFilesError> {
        #[derive(Deserialize)]
        struct Index {
            weight_map: BTreeMap<String, String>,
        }
        let (single, index) = (dir.join(WEIGHTS), dir.join(INDEX));
        if single.exists() || !index.exists() {
            return Ok(Self { all: BTreeSet::from([single.clone()]), places: BTreeMap::new(), first: single });
        }
        let text = read_regular_text(&index, INDEX_BYTES)
            .map_err(|source| WeightFilesError::Read { path: index.clone(), source })?;
        let wrong = |what: String| WeightFilesError::Wrong { path: index.clone(), what };
        let parsed: Index = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let place = |(tensor, shard): (String, String)| match Path::new(&shard).file_name() {
            Some(file) if file == shard.as_str() => Ok((tensor, dir.join(&shard))),
            _ => Err(wrong(format!("shard {shard:?} is not the name of a file beside it"))),
        };
        let places = parsed.weight_map.into_iter().map(place).collect::<Result<BTreeMap<_, _>, _>>()?;
        Ok(Self { all: places.values().cloned().collect(), places, first: index })
    }

    /// The file that has the tensor, or the index that should name it.
    pub fn of(&self, tensor: &str) -> &Path {
        self.places.get(tensor).unwrap_or(&self.first)
    }
}
