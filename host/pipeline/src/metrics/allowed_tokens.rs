//! How many tokens could be drawn in place of each.

use gavel_data::{Group, SamplingMask, Tokens, Trajectory};

/// The mean, over the tokens that the policy wrote, of how many tokens of a vocabulary of this size could be drawn;
/// nothing if rollout recorded no masks.
pub(crate) fn allowed_tokens(groups: &[&Group], vocabulary: usize) -> Option<f64> {
    let members = groups.iter().flat_map(|group| &group.members);
    let tokens = members.flat_map(|member| &member.sample.trajectories).filter_map(Trajectory::tokens);
    let (sum, count) = tokens
        .filter(|tokens| !tokens.masks.is_empty())
        .flat_map(|tokens| of_trajectory(tokens, vocabulary))
        .fold((0, 0), |(sum, count), allowed| (sum + allowed, count + 1));
    (count > 0).then(|| sum as f64 / count as f64)
}

fn of_trajectory(tokens: &Tokens, vocabulary: usize) -> impl Iterator<Item = usize> {
    let written = (0..tokens.response.len()).filter(|at| tokens.loss_mask[*at]);
    written.map(move |at| match tokens.masks.get(at) {
        SamplingMask::All => vocabulary,
        SamplingMask::Only(ids) => ids.len(),
        // A model may have more logits than there are tokens.
        SamplingMask::Except(ids) => vocabulary - ids.iter().filter(|id| (**id as usize) < vocabulary).count(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::group;
    use gavel_data::{OutcomeKind, SamplingMasks};

    #[test]
    fn each_written_token_counts_once() {
        let mut group = group(&[(OutcomeKind::Scored, Some(1.0)); 2]);
        assert_eq!(allowed_tokens(&[&group], 100), None);
        let mut masks = SamplingMasks::new();
        for mask in [SamplingMask::Only(vec![1, 5, 9]), SamplingMask::All, SamplingMask::Except(vec![0, 7, 120])] {
            masks.push(&mask);
        }
        let tokens = Tokens {
            prompt: vec![1],
            response: vec![5, 2, 6, 3],
            loss_mask: vec![true, false, true, true],
            logprobs: vec![0.0; 4],
            versions: vec![0; 4],
            masks,
        };
        group.members[1].sample.trajectories[0].tokens = Some(tokens.into());
        // The last token has no mask, and the other sample has none at all.
        assert_eq!(allowed_tokens(&[&group], 100), Some((3.0 + 98.0 + 100.0) / 3.0));
    }
}
