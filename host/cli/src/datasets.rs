//! Datasets that an argument names.

use anyhow::Result;
use std::borrow::Cow;
use std::path::Path;

/// The files of a dataset: `path` itself or, if it names a dataset of the hub, the files in the hub's cache. Files that
/// the cache lacks are downloaded.
#[cfg(feature = "train")]
pub fn local(path: &Path) -> Result<Cow<'_, Path>> {
    Ok(gavel_pipeline::hub::dataset(path)?)
}

/// The files of a dataset, which must be on this machine.
#[cfg(not(feature = "train"))]
pub fn local(path: &Path) -> Result<Cow<'_, Path>> {
    if path.to_string_lossy().starts_with("hf://") {
        anyhow::bail!(
            "{}: this gavel is built without the hub\nhint: download the files with `hf download --repo-type dataset`, or build gavel with its default features",
            path.display()
        );
    }
    Ok(Cow::Borrowed(path))
}
