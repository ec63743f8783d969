//! Where the line of a trajectory is.

use crate::error::{Result, ViewError};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// The file of a line, its first byte and its bytes.
pub(crate) type LinePlace = (Arc<Path>, u64, u32);

pub(crate) fn read_line_at((path, offset, length): &LinePlace) -> Result<Vec<u8>> {
    let mut line = vec![0; *length as usize];
    let read = File::open(path).and_then(|file| file.read_exact_at(&mut line, *offset));
    read.map_err(ViewError::io("read", path))?;
    Ok(line)
}
