//! Where the scores go: a file, or stdout.

use super::dash::is_dash;
use crate::terminal;
use anyhow::{Context, Result, bail};
use gavel_data::files::WholeFile;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The output, a row a line.
pub enum Output {
    /// A file that gets its name when it is whole, or what is no file, such as `/dev/null`.
    File {
        file: WholeFile,
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
        let file = WholeFile::create_or_open(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self::File { file, path: path.to_owned() })
    }

    /// Writes the lines of several rows.
    pub fn write(&mut self, lines: &[u8]) -> Result<()> {
        match self {
            Self::Stdout => terminal::json_lines(lines),
            Self::File { file, path } => {
                file.write_all(lines).with_context(|| format!("cannot write {}", path.display()))
            }
        }
    }

    pub fn finish(self) -> Result<()> {
        let Self::File { file, path } = self else { return Ok(()) };
        file.finish().with_context(|| format!("cannot write {}", path.display()))
    }
}
