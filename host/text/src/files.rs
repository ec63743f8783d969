//! The JSON files of a checkpoint.

use crate::error::{Result, TextError};
use gavel_data::files::{read_regular_text, without_bom};
use serde_json::{Map, Value};
use std::io::ErrorKind;
use std::path::Path;

/// The most bytes of a file: the largest tokenizers have 50 MB.
pub(crate) const MOST_BYTES: u64 = 512 << 20;

/// The text of the file, or `None` if there is no file.
pub(crate) fn read(path: &Path) -> Result<Option<String>> {
    match read_regular_text(path, MOST_BYTES) {
        // A template would write its byte-order mark before every prompt.
        Ok(text) => Ok(Some(without_bom(&text).to_owned())),
        Err(source) if source.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(TextError::Io { action: "read", path: path.to_owned(), source }),
    }
}

/// The JSON object in the file, or an empty one where there is no file.
pub(crate) fn read_object(path: &Path) -> Result<Map<String, Value>> {
    match read(path)? {
        None => Ok(Map::new()),
        Some(text) => serde_json::from_str(&text)
            .map_err(|error| TextError::File { path: path.to_owned(), what: format!("not a JSON object: {error}") }),
    }
}

pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|source| TextError::Io { action: "write", path: path.to_owned(), source })
}

/// Writes the object on several lines. (`Display` of a JSON value cannot fail.)
pub(crate) fn write_object(path: &Path, object: Map<String, Value>) -> Result<()> {
    write(path, &format!("{:#}\n", Value::Object(object)))
}

/// A special token in `tokenizer_config.json`: its text, or an object around it.
pub(crate) fn token_text(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value.get("content")?.as_str())
}
