//! What a tool wrote, cut to the tokens that it may have.

use gavel_text::{TextError, Tokenizer};
use serde::{Deserialize, Serialize};

/// Which part of a tool's output is left out where it is too long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LeftOut {
    /// The head stays.
    End,
    /// The tail stays.
    Start,
    /// Head and tail stay.
    #[default]
    Middle,
}

/// `output` with at most about `most` tokens; what is left out is said in its place.
pub(crate) fn cut(output: String, most: usize, left_out: LeftOut, tokenizer: &Tokenizer) -> Result<String, TextError> {
    // A token has a byte at least.
    if output.len() <= most {
        return Ok(output);
    }
    let ids = tokenizer.encode(&output)?;
    let Some(over) = ids.len().checked_sub(most).filter(|over| *over > 0) else { return Ok(output) };
    let part = |ids: &[u32]| tokenizer.decode(ids);
    let mark = format!("[{over} tokens left out]");
    Ok(match left_out {
        LeftOut::End => format!("{}\n{mark}", part(&ids[..most])?),
        LeftOut::Start => format!("{mark}\n{}", part(&ids[over..])?),
        LeftOut::Middle => {
            let head = most.div_ceil(2);
            format!("{}\n{mark}\n{}", part(&ids[..head])?, part(&ids[head + over..])?)
        }
    })
}
