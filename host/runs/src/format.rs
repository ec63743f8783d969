//! `run.json`: the version of the formats in a run's folder. Folders of older versions of Gavel have none.

use crate::error::{Result, RunError};
use crate::layout;
use gavel_data::files::{read_regular, write_whole};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::Path;

/// The version of the formats that this version of Gavel writes. It reads this version, older ones, and folders without a
/// version.
pub const FORMAT: u64 = 1;

/// The most bytes of the file.
const MOST_BYTES: u64 = 64 * 1024;

/// Further keys come from newer versions with the same formats.
#[derive(Serialize, Deserialize)]
struct Marker {
    format: u64,
}

/// The version of the formats in `run`; `None` in folders of older versions of Gavel.
///
/// # Errors
/// The file cannot be read, or the version is newer than [`FORMAT`].
pub fn read_format(run: &Path) -> Result<Option<u64>> {
    let path = layout::marker(run);
    let text = match read_regular(&path, MOST_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(RunError::io("read", &path)(error)),
    };
    let Marker { format } = serde_json::from_slice(&text).map_err(|error| RunError::damaged(&path, error))?;
    match format <= FORMAT {
        true => Ok(Some(format)),
        false => Err(RunError::NewerFormat { run: run.to_owned(), format, known: FORMAT }),
    }
}

/// Writes the version of the formats, unless `run` has it.
pub(crate) fn keep_format(run: &Path) -> Result<()> {
    if read_format(run)? == Some(FORMAT) {
        return Ok(());
    }
    let path = layout::marker(run);
    let text = serde_json::to_vec(&Marker { format: FORMAT }).map_err(std::io::Error::from);
    text.and_then(|text| write_whole(&path, &text)).map_err(RunError::io("write", &path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_newer_version_is_refused_and_an_older_one_is_not() {
        let run = tempfile::tempdir().unwrap();
        assert_eq!(read_format(run.path()).unwrap(), None);
        keep_format(run.path()).unwrap();
        assert_eq!(read_format(run.path()).unwrap(), Some(1));
        assert_eq!(fs::read_to_string(layout::marker(run.path())).unwrap(), r#"{"format":1}"#);
        for (text, says) in [
            (r#"{"format":2,"more":[]}"#, "was written by a newer version of gavel (format 2, and this one reads 1)"),
            (r#"{"format":"1"}"#, "run.json is damaged: "),
            ("{", "run.json is damaged: "),
        ] {
            fs::write(layout::marker(run.path()), text).unwrap();
            let error = read_format(run.path()).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
            keep_format(run.path()).unwrap_err();
            assert_eq!(fs::read_to_string(layout::marker(run.path())).unwrap(), text, "it is not overwritten");
        }
    }
}
