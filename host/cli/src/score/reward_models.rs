//! `--reward-model`

use anyhow::Result;

/// `NAME=DIR`, `NAME=URL` or `NAME=TABLE`
pub fn argument(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, model)) if !name.is_empty() && !model.is_empty() => Ok((name.to_owned(), model.to_owned())),
        _ => Err("it is not NAME=DIR; write quality=models/reward-1b".into()),
    }
}
