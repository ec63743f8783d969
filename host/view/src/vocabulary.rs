//! The texts of tokens: by the tokenizer of the run's newest checkpoint, or else of the model that the run began with.

use crate::error::{Result, ViewError};
use gavel_runs::{Checkpoints, read_config};
use gavel_text::Tokenizer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The most tokens of a request.
pub(crate) const MOST_IDS: usize = 10_000;
/// The folders above a run in which the run may have been started.
const MOST_PARENTS: usize = 4;

/// Whose texts are wanted.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TokensRequest {
    /// The ids of the tokens, at most 10,000.
    pub ids: Vec<u32>,
}

/// The texts of tokens.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct TokenTexts {
    /// Where the tokenizer is from.
    pub(crate) from: String,
    /// The bytes of each token as hexadecimal digits: they may be a part of a character. None for an id without a token.
    pub(crate) bytes: BTreeMap<u32, String>,
    /// Those that are no text of the model, such as the token that ends a turn.
    pub(crate) special: Vec<u32>,
}

/// The tokenizer of a run, once it was needed.
#[derive(Default)]
pub(crate) struct Vocabulary(Mutex<Option<(String, Tokenizer)>>);

impl Vocabulary {
    /// The texts of tokens of the run with this name and this folder.
    ///
    /// # Errors
    /// There is no tokenizer, or too many texts are wanted.
    pub(crate) fn texts(&self, name: &str, run: &Path, ids: &[u32]) -> Result<TokenTexts> {
        if ids.len() > MOST_IDS {
            return Err(ViewError::bad(format!("{} tokens are too many", ids.len()), "ask for at most 10,000"));
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            *known = Some(load(name, run)?);
        }
        let Some((from, tokenizer)) = known.as_ref() else { return Ok(TokenTexts::default()) };
        let bytes = ids.iter().map(|id| (*id, hexadecimal(&tokenizer.token_to_text(*id).bytes)));
        let bytes = bytes.filter(|(_, bytes)| !bytes.is_empty()).collect();
        let mut special: Vec<u32> = ids.iter().copied().filter(|id| tokenizer.is_special(*id)).collect();
        special.sort_unstable();
        special.dedup();
        Ok(TokenTexts { from: from.clone(), bytes, special })
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing into a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn load(name: &str, run: &Path) -> Result<(String, Tokenizer)> {
    let checkpoints = Checkpoints::new(run);
    let own = checkpoints.steps().unwrap_or_default().into_iter().rev().map(|step| checkpoints.path(step));
    let config = read_config(run).unwrap_or_default();
    let model = config.get("model").and_then(toml::Value::as_table);
    let path = model.and_then(|model| model.get("path")?.as_str()).map(Path::new);
    let begun = path.map(|path| places(run, path)).unwrap_or_default();
    let mut unread = None;
    for folder in own.chain(begun).filter(|folder| folder.join("tokenizer.json").is_file()) {
        match Tokenizer::load(&folder) {
            Ok(tokenizer) => return Ok((folder.display().to_string(), tokenizer)),
            Err(error) => unread = unread.or(Some(error.to_string())),
        }
    }
    if model.is_some_and(|model| model.contains_key("init")) {
        return Ok(("bytes as tokens".into(), Tokenizer::byte_level()));
    }
    Err(ViewError::NoTokenizer { run: name.to_owned(), why: unread.unwrap_or_else(|| wanted(path)) })
}

/// Where the model that a run began with may be: its path is the one in the folder in which the run was started.
fn places(run: &Path, path: &Path) -> Vec<PathBuf> {
    let whole = run.canonicalize().unwrap_or_else(|_| run.to_owned());
    let parents = whole.ancestors().skip(1).take(MOST_PARENTS).map(|parent| parent.join(path));
    let models = std::iter::once(path.to_owned()).chain(parents);
    // It may be a run, whose newest checkpoint it was.
    models.flat_map(|model| [Checkpoints::new(&model).newest().ok().flatten(), Some(model)]).flatten().collect()
}

fn wanted(path: Option<&Path>) -> String {
    match path {
        Some(path) => format!("it has no checkpoint, and there is no tokenizer.json in {}", path.display()),
        None => "it has no checkpoint, and its configuration names no model".into(),
    }
}
