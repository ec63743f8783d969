//! Where the scores go: a file, or stdout.

use super::dash::is_dash;
use crate::terminal;
use anyhow::{Context, Result, bail};
use gavel_data::disk;
use gavel_data::files::partial;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The output, a row a line.
pub enum Output {
    /// A file that gets its name when it is whole; `partial` is its name until then. What is no file, such as `/dev/null`,
    /// keeps its name: another file in its place would be the end of the device.
    File {
        file: File,
        partial: Option<PathBuf>,
        path: PathBuf,
    },
    Stdout,
}

impl Output {
    /// Starts the file `path`, or stdout if it is `-`. It is not the file of the completions, `data`.
    pub fn create(path: &Path, data: Option<&Path>) -> Result<Self> {
        if is_dash(path) {
            return Ok(Self::Stdout);
        }
        let is_data = |out: PathBuf| data.is_some_and(|data| data.canonicalize().is_ok_and(|data| out == data));
        if path.canonicalize().is_ok_and(is_data) {
            bail!("--out and --data are the same file {}", path.display());
        }
        if path.is_dir() {
            bail!("--out {} is a folder\nhint: name a file in it", path.display());
        }
        let is_device = path.metadata().is_ok_and(|found| !found.is_file());
        let partial = (!is_device).then(|| partial(path));
        let file = File::create(partial.as_deref().unwrap_or(path));
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self::File { file, partial, path: path.to_owned() })
    }

    /// Writes the lines of several rows.
    pub fn write(&mut self, lines: &[u8]) -> Result<()> {
        match self {
            Self::Stdout => terminal::json_lines(lines),
            Self::File { file, path, .. } => {
                file.write_all(lines).with_context(|| format!("cannot write {}", path.display()))
            }
        }
    }

    pub fn finish(self) -> Result<()> {
        let Self::File { file, partial: Some(partial), path } = self else { return Ok(()) };
        disk::sync(&file, &partial)
            .and_then(|()| disk::rename(&partial, &path))
            .and_then(|()| disk::sync_folder(disk::folder_of(&path)))
            .with_context(|| format!("cannot write {}", path.display()))
    }
}
