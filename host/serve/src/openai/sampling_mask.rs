//! Which tokens could be drawn, as vLLM with `--return-sampling-mask` reports it. Here, a request asks for it.

use super::error::ApiError;
use gavel_data::{SamplingMask, SamplingMasks};
use gavel_policy::Sampling;
use gavel_rollout::MOST_MASK_IDS;

/// The field that asks for it.
const FIELD: &str = "return_sampling_mask";

/// Refuses it for responses whose masks would be too long. Each mask may have a few tokens more than `top_k`: those that are
/// as probable as the last of them.
pub(super) fn check(sampling: &Sampling, choices: usize, vocabulary: usize) -> Result<(), ApiError> {
    let wrong = |what: String| Err(ApiError::field(FIELD, format!("`{FIELD}` {what}")));
    if sampling.is_greedy() {
        return wrong("needs a `temperature` above 0: at 0, the most probable token is the only one".into());
    }
    let Some(k) = sampling.top_k else {
        return wrong("needs a `top_k` above 0, which bounds how many tokens are reported".into());
    };
    let most = k.min(vocabulary).saturating_mul(sampling.max_tokens).saturating_mul(choices);
    if most > MOST_MASK_IDS {
        return wrong(format!(
            "could report {most} tokens (`top_k`, for each token of each response), and at most {MOST_MASK_IDS} are allowed"
        ));
    }
    Ok(())
}

/// The tokens that could be drawn in place of each of `tokens` tokens, in ascending order. `left` is how many may be
/// reported yet.
pub(super) fn of(
    masks: &SamplingMasks,
    tokens: usize,
    vocabulary: usize,
    left: &mut usize,
) -> Result<Vec<Vec<u32>>, ApiError> {
    let all = || 0..vocabulary as u32;
    let ids = |position| {
        let ids = match masks.get(position) {
            SamplingMask::Only(ids) => ids,
            SamplingMask::All => all().collect(),
            mask @ SamplingMask::Except(_) => all().filter(|token| mask.contains(*token)).collect(),
        };
        *left = left.checked_sub(ids.len()).ok_or_else(|| {
            let what = format!("`{FIELD}`: more than {MOST_MASK_IDS} tokens could be drawn: many are equally probable");
            ApiError::field(FIELD, what)
        })?;
        Ok(ids)
    };
    (0..tokens).map(ids).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_too_long_is_refused() {
        let sampling = |top_k, temperature| Sampling { top_k, temperature, ..Sampling::new(1 << 15, vec![]) };
        let refused = |sampling: Sampling, choices| {
            check(&sampling, choices, 1000).err().map(|error| error.body()["error"]["message"].to_string())
        };
        assert_eq!(refused(sampling(Some(256), 1.0), 1), None);
        // No more than the vocabulary has.
        assert_eq!(refused(Sampling { max_tokens: 8000, ..sampling(Some(usize::MAX), 1.0) }, 1), None);
        for (sampling, choices, says) in [
            (sampling(None, 1.0), 1, "needs a `top_k` above 0"),
            (sampling(Some(5), 0.0), 1, "needs a `temperature` above 0"),
            (sampling(Some(256), 1.0), 2, "could report 16777216 tokens"),
            (Sampling { max_tokens: usize::MAX, ..sampling(Some(5), 1.0) }, 1, "at most 8388608 are allowed"),
        ] {
            let error = refused(sampling, choices).unwrap();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn each_form_is_a_list_and_all_of_them_are_bounded() {
        let mut masks = SamplingMasks::new();
        let forms = [SamplingMask::Only(vec![1, 4]), SamplingMask::Except(vec![0, 2]), SamplingMask::All];
        forms.iter().for_each(|mask| masks.push(mask));
        let mut left = 10;
        let found = of(&masks, 3, 5, &mut left).unwrap();
        assert_eq!((found, left), (vec![vec![1, 4], vec![1, 3, 4], vec![0, 1, 2, 3, 4]], 0));
        assert!(of(&masks, 1, 5, &mut left).unwrap_err().body().to_string().contains("equally probable"));
    }
}
