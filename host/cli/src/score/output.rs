//! Where the scores go: a file, or stdout.

use super::dash::is_dash;
use crate::terminal;
use anyhow::{Context, Result, bail};
use gavel_data::files::partial;
use gavel_data::{SampleOutcome, disk};
use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The scores of a row.
#[derive(Serialize)]
pub struct OutputRow {
    pub id: Option<String>,
    #[serde(flatten)]
    pub scores: SampleOutcome,
}

/// The output, a row a line.
pub enum Output {
    /// A file that gets its name when it is whole.
    File {
        writer: BufWriter<File>,
        partial: PathBuf,
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
        let partial = partial(path);
        let file = File::create(&partial).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self::File { writer: BufWriter::new(file), partial, path: path.to_owned() })
    }

    pub fn write(&mut self, row: &OutputRow) -> Result<()> {
        match self {
            Self::Stdout => terminal::json(row),
            Self::File { writer, path, .. } => serde_json::to_writer(&mut *writer, row)
                .map_err(std::io::Error::from)
                .and_then(|()| writer.write_all(b"\n"))
                .with_context(|| format!("cannot write {}", path.display())),
        }
    }

    pub fn finish(self) -> Result<()> {
        let Self::File { mut writer, partial, path } = self else { return Ok(()) };
        let written = writer.flush().and_then(|()| disk::sync(writer.get_ref(), &partial));
        written.with_context(|| format!("cannot write {}", path.display()))?;
        disk::rename(&partial, &path)
            .and_then(|()| disk::sync_folder(disk::folder_of(&path)))
            .with_context(|| format!("cannot write {}", path.display()))
    }
}
