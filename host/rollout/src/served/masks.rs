//! Which tokens could be drawn, as servers report it.

use super::config::{ServedConfig, ServerKind};
use super::failure::Failure;
use gavel_data::{SamplingMask, SamplingMasks};

/// The most tokens in the masks of a response: about 60 million bytes of an answer.
pub const MOST_MASK_IDS: usize = 8 << 20;

/// What a server must report: for each token of a response, the tokens that could be drawn in its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct AskedMasks {
    pub(super) kind: ServerKind,
    /// The tokens of the model.
    pub(super) vocabulary: usize,
}

impl AskedMasks {
    /// What a server of this kind must report, if it must.
    pub(super) fn of(config: &ServedConfig, kind: ServerKind) -> Option<Self> {
        config.mask_vocabulary.map(|vocabulary| Self { kind, vocabulary })
    }

    /// The masks of a response of these tokens, in the form in which an engine keeps them.
    pub(super) fn read(self, reported: Option<Vec<Vec<u32>>>, tokens: &[u32]) -> Result<SamplingMasks, Failure> {
        let Some(reported) = reported else {
            let start = match self.kind {
                ServerKind::Gavel => "start a `gavel serve` of the version of this run",
                ServerKind::Vllm => {
                    "start vLLM with VLLM_USE_V2_MODEL_RUNNER=1, --return-sampling-mask and --logprobs-mode processed_logprobs"
                }
            };
            return Err(Failure::Refused(format!(
                "its answer has no `sampling_mask`, which says which tokens could be drawn\nhint: {start}"
            )));
        };
        if reported.len() != tokens.len() {
            let (tokens, found) = (tokens.len(), reported.len());
            return Err(Failure::Refused(format!(
                "its answer has {tokens} tokens, and the `sampling_mask` of {found}"
            )));
        }
        let mut masks = SamplingMasks::new();
        for (mut ids, token) in reported.into_iter().zip(tokens) {
            ids.sort_unstable();
            let wrong = |what: String| Failure::Refused(format!("its `sampling_mask` of the token {token} {what}"));
            if let Some(id) = ids.last().filter(|id| **id as usize >= self.vocabulary) {
                return Err(wrong(format!("has the token {id}, and the model has {}", self.vocabulary)));
            }
            if let Some([id, _]) = ids.array_windows().find(|[one, next]| one == next) {
                return Err(wrong(format!("has the token {id} twice")));
            }
            if ids.binary_search(token).is_err() {
                return Err(wrong(format!("has {} tokens without it", ids.len())));
            }
            masks.push(&SamplingMask::of(&ids, self.vocabulary));
        }
        Ok(masks)
    }
}
