//! `token_ids` of a line: the tokens of a trajectory in few bytes.
//!
//! | key | |
//! |---|---|
//! | `prompt`, `response` | token ids: base64 of 32-bit unsigned integers, little-endian |
//! | `logprobs` | of each response token: base64 of 32-bit floats, little-endian |
//! | `loss_mask` | lengths of runs of response tokens: written by the policy, not written by it, and so on in turn |
//! | `versions` | `[version, n]`: the version of the policy that wrote the next n response tokens |
//! | `masks` | which tokens could be drawn, as [`SamplingMasks::to_text`] has it; only in a queue, where rollout kept it |

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gavel_data::{SamplingMasks, Tokens};
use serde::{Deserialize, Serialize};

/// The tokens of a trajectory as stored in a line.
#[derive(Serialize, Deserialize)]
pub(crate) struct PackedTokens {
    prompt: String,
    response: String,
    logprobs: String,
    loss_mask: Vec<usize>,
    versions: Vec<(u64, usize)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    masks: Option<String>,
}

impl From<&Tokens> for PackedTokens {
    fn from(tokens: &Tokens) -> Self {
        let mut loss_mask = vec![0];
        let mut is_policy = true;
        for mask in &tokens.loss_mask {
            if *mask != is_policy {
                loss_mask.push(0);
                is_policy = *mask;
            }
            if let Some(last) = loss_mask.last_mut() {
                *last += 1;
            }
        }
        let mut versions: Vec<(u64, usize)> = Vec::new();
        for version in &tokens.versions {
            match versions.last_mut() {
                Some((last, count)) if last == version => *count += 1,
                _ => versions.push((*version, 1)),
            }
        }
        Self {
            prompt: pack(tokens.prompt.iter().map(|id| id.to_le_bytes())),
            response: pack(tokens.response.iter().map(|id| id.to_le_bytes())),
            logprobs: pack(tokens.logprobs.iter().map(|logprob| logprob.to_le_bytes())),
            loss_mask,
            versions,
            masks: None,
        }
    }
}

impl PackedTokens {
    /// The tokens with all that training needs of them: which tokens could be drawn too.
    pub(crate) fn with_masks(tokens: &Tokens) -> Self {
        let masks = (!tokens.masks.is_empty()).then(|| tokens.masks.to_text());
        Self { masks, ..Self::from(tokens) }
    }

    /// Unpacks the tokens. All lists have an entry for each response token, except for the masks, which may end earlier.
    pub(crate) fn unpack(&self) -> Result<Tokens, String> {
        let prompt = unpack(&self.prompt, "prompt")?.into_iter().map(u32::from_le_bytes).collect();
        let response: Vec<u32> = unpack(&self.response, "response")?.into_iter().map(u32::from_le_bytes).collect();
        let logprobs: Vec<f32> = unpack(&self.logprobs, "logprobs")?.into_iter().map(f32::from_le_bytes).collect();
        // Checked before anything is allocated: a length takes a few bytes but may ask for any number of tokens.
        let expected = response.len();
        let check = |name: &str, length: Option<usize>| match length == Some(expected) {
            true => Ok(()),
            false => Err(format!("`token_ids.{name}` does not fit the {expected} tokens of the response")),
        };
        check("logprobs", Some(logprobs.len()))?;
        check("loss_mask", sum(self.loss_mask.iter().copied()))?;
        check("versions", sum(self.versions.iter().map(|(_, count)| *count)))?;
        let is_policy = [true, false].into_iter().cycle();
        let runs = self.loss_mask.iter().zip(is_policy);
        let loss_mask = runs.flat_map(|(count, is_policy)| std::iter::repeat_n(is_policy, *count)).collect();
        let versions =
            self.versions.iter().flat_map(|(version, count)| std::iter::repeat_n(*version, *count)).collect();
        let masks = self.masks.as_deref().map(SamplingMasks::from_text).transpose();
        let masks = masks.map_err(|what| format!("`token_ids.masks` is damaged: {what}"))?.unwrap_or_default();
        check("masks", Some(masks.len().max(expected)))?;
        Ok(Tokens { prompt, response, loss_mask, logprobs, versions, masks })
    }
}

/// The tokens after the prompt in the `token_ids` of a line; none where they cannot be read.
pub fn response_ids(token_ids: &serde_json::Value) -> Vec<u32> {
    let packed = token_ids.get("response").and_then(serde_json::Value::as_str).unwrap_or_default();
    unpack(packed, "response").unwrap_or_default().into_iter().map(u32::from_le_bytes).collect()
}

/// The sum; `None` if it is too large to be a length.
fn sum(mut counts: impl Iterator<Item = usize>) -> Option<usize> {
    counts.try_fold(0, usize::checked_add)
}

fn pack(words: impl Iterator<Item = [u8; 4]>) -> String {
    STANDARD.encode(words.flatten().collect::<Vec<u8>>())
}

fn unpack(text: &str, name: &str) -> Result<Vec<[u8; 4]>, String> {
    let bytes =
        STANDARD.decode(text).map_err(|error| format!("the base64 of `token_ids.{name}` is broken: {error}"))?;
    let (words, rest) = bytes.as_chunks();
    match rest {
        [] => Ok(words.to_vec()),
        _ => Err(format!("`token_ids.{name}` has {} bytes, not a multiple of 4", bytes.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_data::SamplingMask;
    use serde_json::{Value, json};

    fn tokens(loss_mask: &[bool], versions: &[u64]) -> Tokens {
        let count = loss_mask.len() as u32;
        Tokens {
            prompt: vec![1, u32::MAX],
            response: (0..count).map(|id| id * 70_000).collect(),
            loss_mask: loss_mask.to_vec(),
            logprobs: (0..count).map(|id| -0.1 * id as f32).collect(),
            versions: versions.to_vec(),
            masks: SamplingMasks::new(),
        }
    }

    #[test]
    fn tokens_come_back_to_the_last_bit() {
        for (loss_mask, versions) in [
            (&[][..], &[][..]),
            (&[true, true, true], &[4, 4, 4]),
            (&[false, true, true, false], &[0, 7, u64::MAX, u64::MAX]),
        ] {
            let tokens = tokens(loss_mask, versions);
            let text = serde_json::to_string(&PackedTokens::from(&tokens)).unwrap();
            let back = serde_json::from_str::<PackedTokens>(&text).unwrap().unpack().unwrap();
            assert_eq!(back, tokens, "{text}");
            assert_eq!(response_ids(&serde_json::from_str(&text).unwrap()), tokens.response);
        }
    }

    #[test]
    fn masks_come_back_where_they_are_packed() {
        let mut given = tokens(&[true, false, true], &[1; 3]);
        given.masks.push(&SamplingMask::Only(vec![0, 70_000]));
        let back = |packed: PackedTokens| packed.unpack().unwrap().masks;
        assert_eq!(back(PackedTokens::with_masks(&given)), given.masks);
        assert_eq!(back(PackedTokens::from(&given)), SamplingMasks::new());
        let text = serde_json::to_string(&PackedTokens::with_masks(&given)).unwrap();
        assert_eq!(back(serde_json::from_str(&text).unwrap()), given.masks, "{text}");
        let without = serde_json::to_string(&PackedTokens::with_masks(&tokens(&[true], &[1]))).unwrap();
        assert!(!without.contains("masks"), "{without}");
    }

    #[test]
    fn the_form_is_the_documented_one() {
        let packed = serde_json::to_value(PackedTokens::from(&tokens(&[false, true, true], &[3, 3, 4]))).unwrap();
        let expected = json!({
            "prompt": "AQAAAP////8=", "response": "AAAAAHARAQDgIgIA", "logprobs": "AAAAgM3MzL3NzEy+",
            "loss_mask": [0, 1, 2], "versions": [[3, 2], [4, 1]],
        });
        assert_eq!(packed, expected);
    }

    #[test]
    fn lengths_that_are_not_those_of_the_response_are_refused() {
        let packed = serde_json::to_value(PackedTokens::from(&tokens(&[true; 3], &[0; 3]))).unwrap();
        for (key, value, says) in [
            ("loss_mask", json!([16_000_000_000_u64]), "`token_ids.loss_mask` does not fit the 3 tokens"),
            ("loss_mask", json!([usize::MAX, 4]), "`token_ids.loss_mask` does not fit the 3 tokens"),
            ("versions", json!([[0, 2]]), "`token_ids.versions` does not fit the 3 tokens"),
            ("logprobs", json!("AAAAAA=="), "`token_ids.logprobs` does not fit the 3 tokens"),
            ("prompt", json!("AAAA"), "`token_ids.prompt` has 3 bytes"),
            ("response", json!("?"), "the base64 of `token_ids.response` is broken"),
            ("masks", json!("BA=="), "`token_ids.masks` does not fit the 3 tokens"),
            ("masks", json!("?"), "`token_ids.masks` is damaged: the base64"),
        ] {
            let mut packed: Value = packed.clone();
            packed[key] = value;
            let error = serde_json::from_value::<PackedTokens>(packed).unwrap().unpack().unwrap_err();
            assert!(error.starts_with(says), "{error}");
        }
    }
}
