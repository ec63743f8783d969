//! What a tool wrote, cut to the tokens that it may have.

use gavel_text::{TextError, Tokenizer};
use serde::{Deserialize, Serialize};

/// Which part of a tool's output is left out if it is too long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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

/// If an output has more bytes than this for each of its tokens, only its ends are tokenised. Few tokens are this long,
/// and to tokenise megabytes takes seconds.
const BYTES_PER_TOKEN: usize = 64;

/// `output` with at most about `most` tokens; a note stands in place of what is left out.
pub(crate) fn cut(output: String, most: usize, left_out: LeftOut, tokenizer: &Tokenizer) -> Result<String, TextError> {
    // A token has at least one byte.
    if output.len() <= most {
        return Ok(output);
    }
    let (head, tail) = match left_out {
        LeftOut::End => (most, 0),
        LeftOut::Start => (0, most),
        LeftOut::Middle => (most.div_ceil(2), most / 2),
    };
    // A text that looks like a special token is plain text here. A character of which only a part is kept is left out.
    let text = |ids: &[u32]| tokenizer.decode_with(ids, false);
    let start = |ids: &[u32]| Ok::<_, TextError>(text(ids)?.trim_end_matches(char::REPLACEMENT_CHARACTER).to_owned());
    let end = |ids: &[u32]| Ok::<_, TextError>(text(ids)?.trim_start_matches(char::REPLACEMENT_CHARACTER).to_owned());
    let (first, last, mark) = if output.len() > BYTES_PER_TOKEN * most {
        let first = &output[..output.floor_char_boundary(BYTES_PER_TOKEN * head)];
        let last = &output[output.ceil_char_boundary(output.len() - BYTES_PER_TOKEN * tail)..];
        let (first, last) = (tokenizer.encode(first)?, tokenizer.encode(last)?);
        let first = start(&first[..head.min(first.len())])?;
        let last = end(&last[last.len().saturating_sub(tail)..])?;
        let over = output.len().saturating_sub(first.len() + last.len());
        (first, last, format!("[{over} bytes left out]"))
    } else {
        let ids = tokenizer.encode(&output)?;
        let Some(over) = ids.len().checked_sub(most).filter(|over| *over > 0) else { return Ok(output) };
        (start(&ids[..head])?, end(&ids[head + over..])?, format!("[{over} tokens left out]"))
    };
    Ok(match left_out {
        LeftOut::End => format!("{first}\n{mark}"),
        LeftOut::Start => format!("{mark}\n{last}"),
        LeftOut::Middle => format!("{first}\n{mark}\n{last}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_text::TextModel;

    #[test]
    fn characters_are_not_cut() {
        let tokenizer = TextModel::byte_level().tokenizer;
        // Characters of three bytes; each byte is a token.
        for (characters, mark) in [(20, "[50 tokens left out]"), (1000, "[2994 bytes left out]")] {
            let output = "界".repeat(characters);
            let cut = |left_out| cut(output.clone(), 10, left_out, &tokenizer).unwrap();
            let over = mark.replace("2994", "2991");
            assert_eq!(cut(LeftOut::End), format!("界界界\n{over}"));
            assert_eq!(cut(LeftOut::Start), format!("{over}\n界界界"));
            assert_eq!(cut(LeftOut::Middle), format!("界\n{mark}\n界"));
        }
    }
}
